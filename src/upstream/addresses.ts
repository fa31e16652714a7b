/**
 * Which addresses connections may point to. Public addresses are allowed unless the operator forbids them. Addresses of
 * the LAN and of this machine are allowed only if the operator names them. Link-local and cloud metadata addresses, and
 * the platform itself, are never allowed. Every address that a name resolves to must be allowed, and the request goes
 * to one of those addresses, so a second look-up cannot change the target (DNS rebinding).
 */

import ipaddr from 'ipaddr.js'
import type { Shares } from '../fairness/shares.ts'
import { dnsCacheTtlMs } from '../limits.ts'
import { createNames, type Lookup } from './name-lookup.ts'
import { UpstreamError, type UpstreamRequest } from './upstream.ts'

type Address = ipaddr.IPv4 | ipaddr.IPv6

/** A value of `--allow-upstream`: the name of a host, or a network, with an optional port. */
export interface AllowedUpstream {
  readonly target: string | readonly [network: Address, bits: number]
  readonly port: number | undefined
}

export interface AddressPolicy {
  readonly allowed: readonly AllowedUpstream[]
  /** Whether public addresses are allowed without being named. */
  readonly isPublicAllowed: boolean
  /** Whether this is an address that we listen on, or our base URL. */
  readonly isSelf: (address: string, port: number, target: URL) => boolean
  /** Pending look-ups are counted against these shares; against shares of their own by default. */
  readonly lookups?: Shares
  /** Replaced in tests; c-ares by default. */
  readonly resolve?: Lookup
}

/** An allowed address to connect to, for this host; both without brackets. */
export interface ResolvedAddress {
  readonly host: string
  /** Expiry, by `performance.now()`. */
  readonly until: number
  readonly address: string
}

/** Resolves the URL's host and checks all its addresses. Rejects with UpstreamError `refused` or `down`. */
export type DestinationOf = (
  url: URL,
  asking: Pick<UpstreamRequest, 'holder' | 'timeoutMs'>,
) => Promise<ResolvedAddress>

export function createAddresses(policy: AddressPolicy): DestinationOf {
  const addressesOf = createNames(policy.resolve, policy.lookups)
  return async (url, { holder, timeoutMs }) => {
    const host = hostOf(url)
    const addresses = ipaddr.isValid(host) ? [host] : await addressesOf(host, holder, timeoutMs)
    const [address] = addresses
    if (address === undefined) throw problemWith('down', url, 'has no address, or no name server answered in time')
    for (const one of addresses) {
      const reason = refusalOf(url, one, policy)
      if (reason !== undefined) throw problemWith('refused', url, reason)
    }
    // Keeping it is safe: connections are made to the checked address, not to the name.
    return { host, address, until: performance.now() + dnsCacheTtlMs }
  }
}

function problemWith(kind: 'down' | 'refused', { hostname }: URL, reason: string): UpstreamError {
  return new UpstreamError(kind, `${hostname} ${reason}`)
}

/**
 * Never allowed: cloud providers serve a machine's credentials at these addresses. Amazon and others, Alibaba, Oracle,
 * Azure; and in IPv6 Amazon, Amazon EKS and Google.
 */
const metadataAddresses = new Set([
  '169.254.169.254',
  '100.100.100.200',
  '192.0.0.192',
  '168.63.129.16',
  'fd00:ec2::254',
  'fd00:ec2::23',
  'fd20:ce::254',
])
const neverRanges = new Set(['linkLocal', 'multicast', 'unspecified', 'broadcast'])

/** The host in lower case, without brackets. */
export function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[(.*)\]$/, '$1').toLowerCase()
}

/** Why a connection to this URL must not use this address; undefined if it may. */
export function refusalOf(url: URL, addressText: string, policy: AddressPolicy): string | undefined {
  const { allowed, isPublicAllowed, isSelf } = policy
  const address = ipaddr.process(addressText)
  const host = hostOf(url)
  const port = Number(url.port || (url.protocol === 'https:' ? 443 : 80))
  // A translator (NAT64, 6to4) on the way would connect to the embedded IPv4 address, so it is checked too.
  const inside = embeddedIpv4(address)
  if (isSelf(address.toString(), port, url)) return 'leads back to this postern: name another server'
  if (isNever(address) || (inside !== undefined && (isNever(inside) || isSelf(inside.toString(), port, url)))) {
    return 'is an address that no connection may point to'
  }
  if (allowed.some((one) => matchesAllowed(one, address, host, port))) return undefined
  // A host in the form that the flag reads, with brackets around IPv6.
  const remedy = `to allow it, restart postern with --allow-upstream ${url.hostname}:${port}`
  if (!isPublic(address)) return `is not a public address: ${remedy}`
  return isPublicAllowed ? undefined : `is not among the addresses that are allowed: ${remedy}`
}

function isNever(address: Address): boolean {
  const text = address.toString()
  return neverRanges.has(address.range()) || metadataAddresses.has(text) || text.startsWith('0.')
}

/** The only public IPv6 range that was ever assigned. Others count as unicast too, and may be local. */
const globalUnicast = ipaddr.IPv6.parseCIDR('2000::/3')

function isPublic(address: Address): boolean {
  if (address.range() !== 'unicast') return false
  return address.kind() === 'ipv4' || (address as ipaddr.IPv6).match(globalUnicast)
}

/** The IPv4 address embedded in an IPv6 address: NAT64 (64:ff9b::/96), 6to4 (2002::/16) or compatible (::/96). */
function embeddedIpv4(address: Address): ipaddr.IPv4 | undefined {
  // `::1` has the form of a compatible one, and is this machine.
  if (address.kind() === 'ipv4' || address.range() === 'loopback') return undefined
  const bytes = address.toByteArray()
  const at = (start: number) => new ipaddr.IPv4(bytes.slice(start, start + 4))
  const begins = (...prefix: number[]) => prefix.every((byte, index) => bytes[index] === byte)
  if (begins(0, 0x64, 0xff, 0x9b)) return at(12)
  if (begins(0x20, 0x02)) return at(2)
  return begins(...Array.from({ length: 12 }, () => 0)) ? at(12) : undefined
}

function matchesAllowed({ target, port }: AllowedUpstream, address: Address, host: string, askedPort: number): boolean {
  if (port !== undefined && port !== askedPort) return false
  if (typeof target === 'string') return target === host || target === address.toString()
  const [network, bits] = target
  return network.kind() === address.kind() && address.match(network as ipaddr.IPv4 & ipaddr.IPv6, bits)
}

/** Parses `host`, `host:port`, `10.0.0.0/8`, `10.0.0.0/8:8443`, `[::1]:8443` or `fd00::/8`; undefined for others. */
export function readAllowedUpstream(text: string): AllowedUpstream | undefined {
  const [, bracketed, plain, portText] =
    /^(?:\[([0-9A-Fa-f:.]+(?:\/\d+)?)\]|([^[\]]+?))(?::(\d{1,5}))?$/.exec(text) ?? []
  const isIPv6 = ipaddr.IPv6.isValid(text) || ipaddr.IPv6.isValidCIDR(text)
  // Short forms such as `1` are refused: some parsers read it as 0.0.0.1.
  if (!isIPv6 && /^[\d.]+(?:[/:]|$)/.test(text) && !/^\d+(?:\.\d+){3}(?:[/:]|$)/.test(text)) return undefined
  const bare = ipaddr.isValid(text) || ipaddr.isValidCIDR(text) ? text : undefined
  const target = (bare ?? bracketed ?? plain)?.toLowerCase()
  const port = bare !== undefined || portText === undefined ? undefined : Number(portText)
  if (target === undefined || (port !== undefined && (port < 1 || port > 65_535))) return undefined
  if (ipaddr.isValidCIDR(target)) return { target: ipaddr.parseCIDR(target), port }
  if (ipaddr.isValid(target)) {
    const network = ipaddr.process(target)
    return { target: [network, network.kind() === 'ipv4' ? 32 : 128], port }
  }
  return /^[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?\.?$/.test(target) ? { target, port } : undefined
}
