/**
 * Where a connection may point. Public addresses, unless the operator closed them; addresses of the LAN and of this
 * machine only where the operator named them; link-local and cloud metadata addresses, and ourselves, never. What
 * counts is every address that a name resolves to, and the request then goes to one of those very addresses.
 */

import { lookup } from 'node:dns/promises'
import ipaddr from 'ipaddr.js'
import { LRUCache } from 'lru-cache'
import { resolvedForMs, resolvedKeptMax } from '../limits.ts'

type Address = ipaddr.IPv4 | ipaddr.IPv6

/** What `--allow-upstream` names: a host, perhaps with a port, or addresses. */
export type AllowedUpstream =
  | { readonly kind: 'host'; readonly host: string; readonly port: number | undefined }
  | { readonly kind: 'addresses'; readonly network: Address; readonly bits: number; readonly port: number | undefined }

export interface AddressPolicy {
  readonly allowed: readonly AllowedUpstream[]
  /** May a connection point to public addresses that nobody named? */
  readonly isPublicAllowed: boolean
  /** Is this where we listen ourselves? */
  readonly isOurs: (address: string, port: number) => boolean
  /** Resolves a name to all of its addresses; throws where there are none. */
  readonly resolve?: (host: string) => Promise<readonly string[]>
}

/** Where a request may go: an address to connect to, for this host. Both without brackets. */
export interface Destination {
  readonly host: string
  /** It holds until then, by `performance.now()`. */
  readonly until: number
  readonly address: string
}

/** `refused`: the operator does not allow it. `unresolved`: the name has no address. */
export class AddressError extends Error {
  readonly kind: 'refused' | 'unresolved'
  constructor(kind: AddressError['kind'], message: string) {
    super(message)
    this.kind = kind
  }
}

export interface Addresses {
  /** Throws AddressError. */
  destinationOf(url: URL): Promise<Destination>
}

export function createAddresses(policy: AddressPolicy): Addresses {
  const resolve = policy.resolve ?? resolveAll
  // For some seconds only; the address that was looked at is the one that is connected to, so this is no opening.
  const known = new LRUCache<string, Destination>({ max: resolvedKeptMax })

  async function addressesOf(host: string): Promise<readonly string[]> {
    if (ipaddr.isValid(host)) return [host]
    const addresses = await resolve(host).catch(() => [])
    if (addresses.length === 0) throw new AddressError('unresolved', 'has no address')
    return addresses
  }

  return {
    async destinationOf(url) {
      const kept = known.get(url.origin)
      if (kept !== undefined && kept.until > performance.now()) return kept
      const host = url.hostname.replace(/^\[(.*)\]$/, '$1').toLowerCase()
      const port = Number(url.port || (url.protocol === 'https:' ? 443 : 80))
      const addresses = await addressesOf(host)
      for (const address of addresses) {
        const reason = refusal(ipaddr.process(address), host, port, policy)
        if (reason !== undefined) throw new AddressError('refused', reason)
      }
      const [address = ''] = addresses
      const destination = { host, address, until: performance.now() + resolvedForMs }
      known.set(url.origin, destination)
      return destination
    },
  }
}

async function resolveAll(host: string): Promise<string[]> {
  const found = await lookup(host, { all: true })
  return found.map(({ address }) => address)
}

/** Reached by nobody, whatever is allowed: cloud machines tell their secrets there. */
const metadataAddresses = new Set(['169.254.169.254', 'fd00:ec2::254', '100.100.100.200', '192.0.0.192'])
const neverRanges = new Set(['linkLocal', 'multicast', 'unspecified', 'broadcast'])

function refusal(
  address: Address,
  host: string,
  port: number,
  { allowed, isPublicAllowed, isOurs }: AddressPolicy,
): string | undefined {
  const text = address.toString()
  const range = address.range()
  if (isOurs(text, port)) return 'is this platform itself'
  if (neverRanges.has(range) || metadataAddresses.has(text) || text.startsWith('0.')) {
    return 'is an address that no connection may point to'
  }
  if (allowed.some((one) => isNamed(one, address, host, port))) return undefined
  if (range !== 'unicast') {
    return 'is not a public address: name it with --allow-upstream if connections may point there'
  }
  return isPublicAllowed ? undefined : 'is not among the addresses that --allow-upstream names'
}

function isNamed(one: AllowedUpstream, address: Address, host: string, port: number): boolean {
  if (one.port !== undefined && one.port !== port) return false
  if (one.kind === 'host') return one.host === host || one.host === address.toString()
  return one.network.kind() === address.kind() && address.match(one.network as ipaddr.IPv4 & ipaddr.IPv6, one.bits)
}

/** `host`, `host:port`, `10.0.0.0/8`, `10.0.0.0/8:8443`, `[::1]:8443`, `fd00::/8`; undefined for anything else. */
export function readAllowedUpstream(text: string): AllowedUpstream | undefined {
  const [, bracketed, plain, portText] =
    /^(?:\[([0-9A-Fa-f:.]+(?:\/\d+)?)\]|([^[\]]+?))(?::(\d{1,5}))?$/.exec(text) ?? []
  const bare = ipaddr.isValid(text) || ipaddr.isValidCIDR(text) ? text : undefined
  const target = (bare ?? bracketed ?? plain)?.toLowerCase()
  const port = bare !== undefined || portText === undefined ? undefined : Number(portText)
  if (target === undefined || (port !== undefined && (port < 1 || port > 65_535))) return undefined
  if (ipaddr.isValidCIDR(target)) {
    const [network, bits] = ipaddr.parseCIDR(target)
    return { kind: 'addresses', network, bits, port }
  }
  if (ipaddr.isValid(target)) {
    const network = ipaddr.process(target)
    return { kind: 'addresses', network, bits: network.kind() === 'ipv4' ? 32 : 128, port }
  }
  return /^[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?\.?$/.test(target) ? { kind: 'host', host: target, port } : undefined
}
