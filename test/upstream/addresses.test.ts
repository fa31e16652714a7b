/** Where a connection may point, and how an operator says it. */

import { describe, expect, jest, test } from 'bun:test'
import { dnsCacheTtlMs, pendingLookupsMax } from '../../src/limits.ts'
import {
  type AddressPolicy,
  createAddresses,
  hostOf,
  readAllowedUpstream,
  refusalOf,
} from '../../src/upstream/addresses.ts'

const holder = { keyId: 'key', family: 'key' }
const named = (texts: readonly string[]) =>
  texts.map((text) => {
    const one = readAllowedUpstream(text)
    if (one === undefined) throw new Error(`${text} names nothing`)
    return one
  })
const policy = (allowed: readonly string[], isPublicAllowed: boolean): AddressPolicy => ({
  allowed: named(allowed),
  isPublicAllowed,
  isSelf: (address, port) => address === '198.18.0.1' && port === 8787,
})
const refused = (
  address: string,
  allowed: readonly string[] = [],
  isPublicAllowed = true,
  url = 'http://a.example.com/',
) => refusalOf(new URL(url), address, policy(allowed, isPublicAllowed))
const never = 'is an address that no connection may point to'
const remedy = 'to allow it, restart postern with --allow-upstream a.example.com:80'
const notPublic = `is not a public address: ${remedy}`
const notNamed = `is not among the addresses that are allowed: ${remedy}`

describe('without a word of the operator', () => {
  const rows: [address: string, refusal: string | undefined][] = [
    ['93.184.215.14', undefined],
    ['2606:2800:21f:cb07::1', undefined],
    ...[
      '127.0.0.1',
      '10.0.0.1',
      '172.16.0.1',
      '192.168.1.1',
      '100.64.0.1',
      '::1',
      'fd00::1',
      '4000::1',
      '::ffff:10.0.0.1',
    ].map((address): [string, string] => [address, notPublic]),
    ...[
      '169.254.0.1',
      '169.254.169.254',
      '100.100.100.200',
      '192.0.0.192',
      '168.63.129.16',
      '0.0.0.0',
      '0.1.2.3',
      '224.0.0.1',
      '255.255.255.255',
      '::',
      'fe80::1',
      'ff02::1',
      'fd00:ec2::254',
      '::ffff:169.254.169.254',
      '64:ff9b::a9fe:a9fe',
      '2002:a9fe:a9fe::1',
      '::a9fe:a9fe',
    ].map((address): [string, string] => [address, never]),
  ]
  for (const [address, refusal] of rows)
    test(`${address}: ${refusal ?? 'yes'}`, () => expect(refused(address)).toBe(refusal))
})

test('what is never reached is not reached by its name either', () => {
  for (const address of ['169.254.169.254', '0.0.0.0', 'fe80::1', '64:ff9b::a9fe:a9fe'])
    expect(refused(address, ['0.0.0.0/0', '::/0', 'a.example.com'])).toBe(never)
})

test('this machine is reached by either of its addresses, once it is named', () => {
  for (const address of ['127.0.0.1', '::1']) expect(refused(address, [address])).toBeUndefined()
})

test('we ourselves are not reached, under whatever address leads here', () => {
  const ours = 'http://a.example.com:8787/'
  expect(refused('198.18.0.1', ['198.18.0.1'], true, ours)).toBe('leads back to this postern: name another server')
  expect(refused('64:ff9b::c612:1', ['64:ff9b::c612:1'], true, ours)).toBe(never)
  expect(refused('198.18.0.1', ['198.18.0.1'])).toBeUndefined()
})

test('an operator who closes public addresses opens those that have a name', () => {
  expect(refused('93.184.215.14', [], false)).toBe(notNamed)
  expect(refused('93.184.215.14', ['a.example.com'], false)).toBeUndefined()
  expect(refused('93.184.215.14', ['93.184.215.0/24'], false)).toBeUndefined()
  expect(refused('93.184.216.14', ['93.184.215.0/24'], false)).toBe(notNamed)
  expect(refused('2606::1', ['93.184.215.0/24'], false)).toBe(notNamed)
})

test('a name with a port is for that port alone, the usual one of its scheme where the URL has none', () => {
  const rows: [allowed: string, url: string, isRefused: boolean][] = [
    ['10.0.0.1:443', 'https://a.lan/', false],
    ['10.0.0.1:443', 'http://a.lan/', true],
    ['10.0.0.1:80', 'http://a.lan/', false],
    ['a.lan:8443', 'https://a.lan:8443/', false],
    ['a.lan:8443', 'https://a.lan/', true],
    ['a.lan', 'https://a.lan:1/', false],
    ['b.lan', 'https://a.lan/', true],
    ['A.LAN', 'https://a.lan/', false],
  ]
  for (const [allowed, url, isRefused] of rows)
    expect({ allowed, url, isRefused: refused('10.0.0.1', [allowed], true, url) !== undefined }).toEqual({
      allowed,
      url,
      isRefused,
    })
})

test('a refusal has the value of the flag that would allow it', () => {
  const rows: [url: string, address: string][] = [
    ['http://127.0.0.1:3911/mcp', '127.0.0.1'],
    ['http://localhost:3911/mcp', '127.0.0.1'],
    ['http://[::1]:3911/mcp', '::1'],
    ['https://tools.lan/mcp', '10.0.0.5'],
  ]
  for (const [url, address] of rows) {
    const [, value = ''] = /--allow-upstream (\S+)$/.exec(refused(address, ['127.0.0.1:1'], true, url) ?? '') ?? []
    expect(value).toEndWith(url.startsWith('https') ? ':443' : ':3911')
    expect(refused(address, [value], true, url)).toBeUndefined()
  }
})

test('each spelling of what is allowed means one thing', () => {
  const read = (text: string) => {
    const one = readAllowedUpstream(text)
    if (one === undefined) return undefined
    return [typeof one.target === 'string' ? one.target : one.target.join('/'), one.port]
  }
  const rows: [text: string, meaning: [string, number | undefined] | undefined][] = [
    ['tools.lan', ['tools.lan', undefined]],
    ['Tools.LAN:8443', ['tools.lan', 8443]],
    ['tools.lan.', ['tools.lan.', undefined]],
    ['10.0.0.1', ['10.0.0.1/32', undefined]],
    ['10.0.0.1:1', ['10.0.0.1/32', 1]],
    ['10.0.0.0/8', ['10.0.0.0/8', undefined]],
    ['10.0.0.0/8:65535', ['10.0.0.0/8', 65_535]],
    ['::1', ['::1/128', undefined]],
    ['2001:db8::5', ['2001:db8::5/128', undefined]],
    ['2001:db8::/32', ['2001:db8::/32', undefined]],
    ['fd00::5:8443', ['fd00::5:8443/128', undefined]],
    ['[::1]', ['::1/128', undefined]],
    ['[::1]:8443', ['::1/128', 8443]],
    ['fd00::/8', ['fd00::/8', undefined]],
    ['[fd00::/8]:443', ['fd00::/8', 443]],
    ['::ffff:10.0.0.1', ['10.0.0.1/32', undefined]],
    ...[
      '',
      '1',
      '10.1',
      '010',
      '10.0.0.0/33',
      '10.0.0.1:0',
      '10.0.0.1:65536',
      'a b',
      '-a',
      'a-',
      '[a',
      'http://a',
      '*.lan',
      'a:b',
      ':80',
    ].map((text): [string, undefined] => [text, undefined]),
  ]
  for (const [text, meaning] of rows) expect({ text, meaning: read(text) }).toEqual({ text, meaning: meaning as never })
})

describe('a name', () => {
  const addresses = (found: readonly string[]) => createAddresses({ ...policy([], true), resolve: async () => found })
  const destination = (found: readonly string[], url = 'https://a.example.com/') =>
    addresses(found)(new URL(url), { holder, timeoutMs: 1000 })

  test('leads to its first address, where all of them may be reached', async () => {
    expect(await destination(['93.184.215.14', '93.184.215.15'])).toMatchObject({
      host: 'a.example.com',
      address: '93.184.215.14',
    })
    for (const found of [
      ['10.0.0.1', '93.184.215.14'],
      ['93.184.215.14', '10.0.0.1'],
    ])
      await expect(destination(found)).rejects.toMatchObject({ kind: 'refused' })
  })

  test('without an address leads nowhere', async () => {
    await expect(destination([])).rejects.toMatchObject({ kind: 'down' })
  })

  test('that is an address is not looked up', async () => {
    expect(await destination([], 'https://[2606::1]:8443/')).toMatchObject({ host: '2606::1', address: '2606::1' })
    expect(hostOf(new URL('https://[2606::1]/'))).toBe('2606::1')
  })

  test('is looked up again when what was found is too old, and not before', async () => {
    jest.useFakeTimers()
    try {
      let found = ['93.184.215.14']
      const addresses = createAddresses({ ...policy([], true), resolve: async () => found })
      const at = (url = 'https://a.example.com/') => addresses(new URL(url), { holder, timeoutMs: 60_000 })
      const first = await at()
      expect(first.until).toBe(performance.now() + dnsCacheTtlMs)
      found = ['93.184.215.15']
      jest.advanceTimersByTime(dnsCacheTtlMs - 1)
      // What was found is kept by name.
      expect((await at('https://a.example.com:8443/other')).address).toBe('93.184.215.14')
      jest.advanceTimersByTime(1)
      expect((await at()).address).toBe('93.184.215.15')
    } finally {
      jest.useRealTimers()
    }
  })

  test('beyond the caller’s share of look-ups is not looked up, and the caller is told why', async () => {
    const silent = createAddresses({ ...policy([], true), resolve: () => new Promise(() => {}) })
    const ask = (name: string) => silent(new URL(`https://${name}.example.com/`), { holder, timeoutMs: 1 })
    for (let i = 0; i < pendingLookupsMax / 4; i += 1) ask(`a${i}`).catch(() => {})
    await expect(ask('more')).rejects.toMatchObject({
      kind: 'down',
      message: 'more.example.com could not be looked up: too many names are being looked up: try again',
    })
  })

  test('that the resolver itself fails at is not one without an address', async () => {
    const broken = createAddresses({
      ...policy([], true),
      resolve: () => {
        throw new RangeError('no resolver')
      },
    })
    const asked = broken(new URL('https://a.example.com/'), { holder, timeoutMs: 1000 })
    await expect(asked).rejects.toThrow(RangeError)
  })
})
