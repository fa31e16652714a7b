import { describe, expect, spyOn, test } from 'bun:test'
import { clientAddress, providerOf, readNetwork } from '../../src/http/client-address.ts'

const trusted = ['127.0.0.1', '10.0.0.0/8', 'fd00::/8'].flatMap((text) => readNetwork(text) ?? [])
const told = (peer: string, headers: Record<string, string> = {}) =>
  clientAddress(peer, { headers: new Headers(headers) }, trusted)

describe('the address of a client', () => {
  const cases: [what: string, peer: string, headers: Record<string, string>, address: string][] = [
    ['is that of the connection', '192.0.2.1', {}, '192.0.2.1'],
    ['is what the runtime says where that is no address', 'unix:/run/proxy', {}, 'unix:/run/proxy'],
    ['is not what a stranger says', '192.0.2.1', { 'x-forwarded-for': '198.51.100.7' }, '192.0.2.1'],
    ['is what a trusted proxy says', '127.0.0.1', { 'x-forwarded-for': '198.51.100.7' }, '198.51.100.7'],
    ['as the runtime spells the proxy', '::ffff:127.0.0.1', { 'x-forwarded-for': '198.51.100.7' }, '198.51.100.7'],
    [
      'is the last that no trusted proxy is',
      '10.1.1.1',
      { 'x-forwarded-for': '1.1.1.1, 198.51.100.7, 10.2.2.2' },
      '198.51.100.7',
    ],
    ['is nothing further left', '10.1.1.1', { 'x-forwarded-for': '198.51.100.7, 203.0.113.9' }, '203.0.113.9'],
    ['is the proxy’s where it says nothing', '10.1.1.1', {}, '10.1.1.1'],
    ['is the proxy’s where all are trusted', '10.1.1.1', { 'x-forwarded-for': '10.2.2.2' }, '10.1.1.1'],
    ['is the proxy’s where it says nonsense', '10.1.1.1', { 'x-forwarded-for': '198.51.100.7, unknown' }, '10.1.1.1'],
    ['may come with a port', '10.1.1.1', { 'x-forwarded-for': '198.51.100.7:4711' }, '198.51.100.7'],
    ['may be told by Forwarded', '10.1.1.1', { forwarded: 'for=198.51.100.7;proto=https' }, '198.51.100.7'],
    [
      'of several Forwarded',
      '10.1.1.1',
      { forwarded: 'for=1.1.1.1, proto=https;For="198.51.100.7:80"' },
      '198.51.100.7',
    ],
    ['of IPv6 is its network', '10.1.1.1', { forwarded: 'for="[2001:db8:1:2:3:4:5:6]:4711"' }, '2001:db8:1:2::/64'],
    ['of IPv6 in brackets', '10.1.1.1', { 'x-forwarded-for': '[2001:db8:1:2::9]' }, '2001:db8:1:2::/64'],
    ['of IPv6, to the bit', '2001:db8:1:ffff:ffff:4:5:6', {}, '2001:db8:1:ffff::/64'],
    ['of a connection over IPv6 is its network', '2001:db8:1:2:3:4:5:6', {}, '2001:db8:1:2::/64'],
    ['of hidden ones is the proxy’s', '10.1.1.1', { forwarded: 'for=_hidden, for=unknown' }, '10.1.1.1'],
    [
      'is the proxy’s where two headers disagree: somebody wrote one of them',
      '10.1.1.1',
      { 'x-forwarded-for': '198.51.100.7', forwarded: 'for=192.0.2.66' },
      '10.1.1.1',
    ],
    [
      'may be told twice',
      '10.1.1.1',
      { 'x-forwarded-for': '198.51.100.7', forwarded: 'for=198.51.100.7' },
      '198.51.100.7',
    ],
  ]
  for (const [what, peer, headers, address] of cases) test(what, () => expect(told(peer, headers)).toBe(address))

  test('is looked for among the last hops only', () => {
    const many = `198.51.100.7${', 10.0.0.1'.repeat(1000)}`
    expect(told('10.1.1.1', { 'x-forwarded-for': many })).toBe('10.1.1.1')
  })
  test('is looked for in as many hops as count, of the thousands that a client may send', () => {
    const split = spyOn(String.prototype, 'split')
    for (const name of ['forwarded', 'x-forwarded-for'])
      expect(told('10.1.1.1', { [name]: `${','.repeat(15_000)}for=198.51.100.7` })).toBe(
        name === 'forwarded' ? '198.51.100.7' : '10.1.1.1',
      )
    expect(split.mock.calls.length).toBeLessThan(100)
    split.mockRestore()
    expect(told('10.1.1.1', { forwarded: '' })).toBe('10.1.1.1')
    expect(told('10.1.1.1', { forwarded: `for=198.51.100.7;by=${'x'.repeat(200)}` })).toBe('10.1.1.1')
  })
  test('is that of the connection where nobody is trusted', () => {
    expect(clientAddress('127.0.0.1', { headers: new Headers({ 'x-forwarded-for': '198.51.100.7' }) }, [])).toBe(
      '127.0.0.1',
    )
  })
})

test('one trusted proxy is enough, and its neighbour is a stranger', () => {
  const headers = new Headers({ 'x-forwarded-for': '198.51.100.7' })
  for (const [proxy, neighbour, bucket] of [
    ['10.1.1.1', '10.1.1.0', '10.1.1.0'],
    ['2001:db8::9', '2001:db8::8', '2001:db8::/64'],
  ] as const) {
    const alone = [readNetwork(proxy)].flatMap((network) => network ?? [])
    expect(clientAddress(proxy, { headers }, alone)).toBe('198.51.100.7')
    expect(clientAddress(neighbour, { headers }, alone)).toBe(bucket)
  }
})

test('a network is an address or a CIDR', () => {
  const bits = ['192.0.2.1', '::1', '10.0.0.0/8', 'fd00::/9'].map((text) => readNetwork(text)?.bits)
  expect(bits).toEqual([32, 128, 8, 9])
  for (const good of ['10.0.0.0/8', '192.0.2.1', '::1', 'fd00::/8']) expect(readNetwork(good)).toBeDefined()
  for (const bad of ['', '1', '10.0.0', 'proxy.example.com', '10.0.0.0/33', '10.0.0.0/8/8', '0x7f.1']) {
    expect(readNetwork(bad)).toBeUndefined()
  }
})

test('networks are those of which somebody has all addresses', () => {
  const same = (one: string, other: string) => providerOf(one) === providerOf(other)
  expect(same('192.0.2.1', '192.0.2.254')).toBe(true)
  expect(same('192.0.2.1', '192.0.3.1')).toBe(false)
  expect(same('192.0.2.1', '193.0.2.1')).toBe(false)
  expect(same('2001:db8:1:1::/64', '2001:db8:1:ffff::/64')).toBe(true)
  expect(same('2001:db8:1:1::/64', '2001:db8:2:1::/64')).toBe(true)
  expect(same('2001:db8:1:1::/64', '2001:db9:1:1::/64')).toBe(false)
  expect(same('2001:db8:1:1::/64', '2101:db8:1:1::/64')).toBe(false)
  expect(same('unix:/a', 'unix:/b')).toBe(false)
})
