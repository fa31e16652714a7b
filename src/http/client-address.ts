/**
 * The client's address: that of the TCP connection, or the one that a trusted proxy reports in `X-Forwarded-For` or
 * `Forwarded` (RFC 7239). Each proxy appends an entry; a client can send any entries of its own, which stay to the
 * left. So both headers are read from the right, and only as far as the hops are trusted proxies.
 */

import ipaddr from 'ipaddr.js'

/** Ours: entries of `X-Forwarded-For` or `Forwarded` that postern reads, from the right. Past it: if all of these entries name trusted proxies, the address of the proxy that sent the request counts as the client's. */
const forwardedHopsMax = 20
/** Ours: characters of an entry of `X-Forwarded-For` or `Forwarded`. Past it: postern treats the entry as one that it cannot read. */
const forwardedHopCharsMax = 200

export interface Network {
  readonly address: ipaddr.IPv4 | ipaddr.IPv6
  readonly bits: number
}

/** Parses an address or a CIDR range; undefined for anything else. */
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
 * The client's address, for rate limits. For IPv6 it is the /64 network, because one customer has at least that. `peer`
 * is the address of the TCP connection. If the two headers disagree, the client may have forged one of them, so the
 * proxy's own address is used. The headers of the request are read only if it comes from a trusted proxy.
 */
export function clientAddress(
  peer: string,
  request: { readonly headers: Headers },
  trusted: readonly Network[],
): string {
  const from = parseAddress(peer)
  if (from === undefined) return peer
  if (trusted.length === 0 || !isTrusted(from, trusted)) return asBucket(from)
  const forwardedFor = request.headers.get('x-forwarded-for')
  const forwarded = request.headers.get('forwarded')
  const told = [
    ...(forwardedFor === null ? [] : [lastHops(forwardedFor)]),
    ...(forwarded === null ? [] : [lastHops(forwarded).map(forOf)]),
  ].map((hops) => asBucket(lastUntrusted(hops, trusted) ?? from))
  const [first = asBucket(from), second = first] = told
  return first === second ? first : asBucket(from)
}

/** The network of the provider of a client's address: /24 for IPv4; /32 for IPv6, of which it may use each /48. */
export function providerOf(clientAddress: string): string {
  const address = parseAddress(clientAddress.replace(/\/64$/, ''))
  if (address === undefined) return clientAddress
  const bytes = address.toByteArray().slice(0, address.kind() === 'ipv4' ? 3 : 4)
  return Buffer.from(bytes).toString('hex')
}

/** The last hops of a header, from the right; the whole may have thousands, which a client sent. */
function lastHops(header: string): string[] {
  const hops: string[] = []
  let end = header.length
  while (end >= 0 && hops.length < forwardedHopsMax) {
    const comma = end === 0 ? -1 : header.lastIndexOf(',', end - 1)
    hops.push(end - comma > forwardedHopCharsMax ? '' : header.slice(comma + 1, end))
    end = comma
  }
  return hops
}

/** The first hop that is not a trusted proxy. Undefined if a hop before it cannot be parsed, or all are trusted. */
function lastUntrusted(hops: readonly string[], trusted: readonly Network[]): ipaddr.IPv4 | ipaddr.IPv6 | undefined {
  for (const hop of hops) {
    const address = parseAddress(hop.trim())
    if (address === undefined || !isTrusted(address, trusted)) return address
  }
  return undefined
}

/** The value of `for` in an element of `Forwarded`, such as `for="[2001:db8::1]:4711";proto=https`, without quotes. */
function forOf(element: string): string {
  const pair = element.split(';').find((one) => /^\s*for=/i.test(one)) ?? ''
  const value = pair.slice(pair.indexOf('=') + 1).trim()
  return value.replace(/^"(.*)"$/, '$1')
}

/** Parses an address with or without a port and brackets. */
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

/** The name of the rate limit's bucket for an address. */
function asBucket(address: ipaddr.IPv4 | ipaddr.IPv6): string {
  if (address.kind() === 'ipv4') return address.toString()
  const network = address.toByteArray().map((byte, index) => (index < 8 ? byte : 0))
  return `${new ipaddr.IPv6(network)}/64`
}
