/**
 * Where a request comes from: the address of the connection, or what a proxy that the operator trusts says of it
 * (`X-Forwarded-For`, or `Forwarded` of RFC 7239). What stands to the left of the last proxy's own entry anybody may
 * have written, so both are read from the right, as long as the hops are trusted ones.
 */

import ipaddr from 'ipaddr.js'
import { forwardedHopsMax } from '../limits.ts'

export interface Network {
  readonly address: ipaddr.IPv4 | ipaddr.IPv6
  readonly bits: number
}

/** An address or a CIDR; undefined for anything else. */
export function readNetwork(text: string): Network | undefined {
  if (ipaddr.IPv4.isValidFourPartDecimal(text) || ipaddr.IPv6.isValid(text)) {
    const address = ipaddr.process(text)
    return { address, bits: address.kind() === 'ipv4' ? 32 : 128 }
  }
  if (!ipaddr.isValidCIDR(text)) return undefined
  const [address, bits] = ipaddr.parseCIDR(text)
  return { address, bits }
}

/**
 * The client's address for limits: of IPv6 its network of 64 bits, which is one customer's. `peer` is the address of
 * the connection. Where the two headers disagree, somebody wrote one of them, and the proxy's own address is all we
 * know.
 */
export function clientAddress(peer: string, headers: Headers, trusted: readonly Network[]): string {
  const from = parseAddress(peer)
  if (from === undefined) return peer
  if (trusted.length === 0 || !isTrusted(from, trusted)) return asBucket(from)
  const forwardedFor = headers.get('x-forwarded-for')
  const forwarded = headers.get('forwarded')
  const told = [
    ...(forwardedFor === null ? [] : [forwardedFor.split(',')]),
    ...(forwarded === null ? [] : [forwarded.split(',').map(forOf)]),
  ].map((hops) => asBucket(lastUntrusted(hops, trusted) ?? from))
  const [first = asBucket(from), second = first] = told
  return first === second ? first : asBucket(from)
}

/** From the right: the first hop that is no trusted proxy. Undefined where one cannot be read, or all are trusted. */
function lastUntrusted(hops: readonly string[], trusted: readonly Network[]): ipaddr.IPv4 | ipaddr.IPv6 | undefined {
  for (const hop of hops.slice(-forwardedHopsMax).reverse()) {
    const address = parseAddress(hop.trim())
    if (address === undefined || !isTrusted(address, trusted)) return address
  }
  return undefined
}

/** `for=192.0.2.43;proto=https`, `for="[2001:db8::1]:4711"` -> the address, with its port. */
function forOf(element: string): string {
  const pair = element.split(';').find((one) => /^\s*for=/i.test(one))
  return pair === undefined
    ? ''
    : pair
        .slice(pair.indexOf('=') + 1)
        .trim()
        .replace(/^"(.*)"$/, '$1')
}

/** With or without a port and brackets. */
function parseAddress(text: string): ipaddr.IPv4 | ipaddr.IPv6 | undefined {
  const bare = /^\[([^\]]+)\](?::\d+)?$/.exec(text)?.[1] ?? /^([\d.]+):\d+$/.exec(text)?.[1] ?? text
  return ipaddr.IPv4.isValidFourPartDecimal(bare) || ipaddr.IPv6.isValid(bare) ? ipaddr.process(bare) : undefined
}

function isTrusted(address: ipaddr.IPv4 | ipaddr.IPv6, trusted: readonly Network[]): boolean {
  return trusted.some(
    (network) =>
      network.address.kind() === address.kind() &&
      address.match(network.address as ipaddr.IPv4 & ipaddr.IPv6, network.bits),
  )
}

function asBucket(address: ipaddr.IPv4 | ipaddr.IPv6): string {
  if (address.kind() === 'ipv4') return address.toString()
  const network = address.toByteArray().map((byte, index) => (index < 8 ? byte : 0))
  return `${new ipaddr.IPv6(network)}/64`
}
