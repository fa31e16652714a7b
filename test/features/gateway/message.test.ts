/** What is a message, what is none, and which headers may go with it. */

import { describe, expect, spyOn, test } from 'bun:test'
import { PlatformError } from '../../../src/errors.ts'
import { eraOf, parsingMessage, readMessage, withoutAmbiguousParams } from '../../../src/features/gateway/message.ts'
import { drained } from '../../../src/schema/steps.ts'
import { withAllowance } from '../../support/allowance.ts'

const messageOf = (bytes: Uint8Array<ArrayBuffer>) => drained(parsingMessage(bytes))

/** So many values besides the outermost list. */
const nested = (values: number) => Array.from({ length: values / 50 }, () => Array.from({ length: 49 }, () => ({})))

const encoded = (body: unknown) => new TextEncoder().encode(typeof body === 'string' ? body : JSON.stringify(body))

describe('a message', () => {
  const rpc = (more: object) => ({ jsonrpc: '2.0', ...more })
  const described = { _meta: { a: nested(950) }, capabilities: nested(950), arguments: { a: nested(5000) } }
  const taken: [what: string, body: object, method: string | undefined, id: string | number | null][] = [
    ['is a request', rpc({ id: 1, method: 'ping' }), 'ping', 1],
    ['has a text as its id, an empty one too', rpc({ id: '', method: 'ping', params: {} }), 'ping', ''],
    ['has an id of 512 characters', rpc({ id: 'x'.repeat(512), method: 'ping' }), 'ping', 'x'.repeat(512)],
    ['replies to a long id', rpc({ id: 'x'.repeat(4096), result: {} }), undefined, 'x'.repeat(4096)],
    ['has the id 0', rpc({ id: 0, method: 'ping' }), 'ping', 0],
    ['is a notification', rpc({ method: 'notifications/initialized' }), 'notifications/initialized', null],
    ['is a reply with a result, whatever it is', rpc({ id: 1, result: null }), undefined, 1],
    ['is a reply with an error', rpc({ id: 'a', error: { code: 1, message: '' } }), undefined, 'a'],
    [
      ...['says much of itself, and has very many arguments', rpc({ id: 1, method: 'ping', params: described })],
      ...['ping', 1],
    ] as [string, object, string, number],
    ['has parameters in a list', rpc({ id: 1, method: 'ping', params: [] }), 'ping', 1],
  ]
  for (const [what, body, method, id] of taken) {
    test(what, () => {
      const bytes = encoded(body)
      expect(messageOf(bytes)).toEqual({
        bytes,
        body: body as never,
        method,
        id,
        era: 'handshake',
      } as never)
    })
  }

  const neither = 'not a JSON-RPC request, notification or response'
  const refused: [what: string, body: unknown, message: string, id: string | number | null][] = [
    ['a list', [rpc({ id: 1, method: 'ping' })], 'batches are not supported', null],
    ['null', 'null', 'the body must be a JSON-RPC object', null],
    ['a text', '"ping"', 'the body must be a JSON-RPC object', null],
    ['of no version', { id: 1, method: 'ping' }, 'jsonrpc: must be "2.0"', 1],
    ['of another version', { jsonrpc: 2, id: 1, method: 'ping' }, 'jsonrpc: must be "2.0"', 1],
    [
      ...['a request with a long `_meta`', rpc({ id: 1, method: 'ping', params: { _meta: { a: nested(1000) } } })],
      ...['params._meta: has more than 1000 values', 1],
    ] as [string, unknown, string, number],
    [
      ...[
        'a greeting of many capabilities',
        rpc({ id: 1, method: 'initialize', params: { capabilities: nested(1000) } }),
      ],
      ...['params.capabilities: has more than 1000 values', 1],
    ] as [string, unknown, string, number],
    ['a request without a method', rpc({ id: 1 }), neither, 1],
    ['a reply with nothing', rpc({ id: 1, params: {} }), neither, 1],
    ['a reply with both', rpc({ id: 1, result: {}, error: {} }), neither, 1],
    ['a reply to nothing', rpc({ result: {} }), neither, null],
    ['a request that replies', rpc({ id: 1, method: 'ping', result: {} }), 'carries no result and no error', 1],
    ['a request that fails', rpc({ id: 'a', method: 'ping', error: {} }), 'carries no result and no error', 'a'],
    ['a method that is no text', rpc({ id: 1, method: null }), 'method: must be a string', 1],
    ['a method that is a list', rpc({ id: 1, method: ['ping'] }), 'method: must be a string', 1],
    ['a method of many characters', rpc({ id: 1, method: 'x'.repeat(257) }), 'method: has more than 256 characters', 1],
    ['an id of null', rpc({ id: null, method: 'ping' }), 'id: must be a string or a number', null],
    ['an id of true', rpc({ id: true, method: 'ping' }), 'id: must be a string or a number', null],
    [
      'an id that parsers read differently',
      '{"jsonrpc":"2.0","id":12345678901234567890,"method":"ping"}',
      'id: the number has more digits than postern keeps exactly: send a string, or a smaller number',
      null,
    ],
    [
      'an id past the largest number',
      '{"jsonrpc":"2.0","id":1e999,"method":"ping"}',
      'id: the number has more digits than postern keeps exactly',
      null,
    ],
    // It is not repeated: errors and notifications would repeat it again and again.
    ['an id that is long', rpc({ id: 'x'.repeat(513), method: 'ping' }), 'id: has more than 512 characters', null],
    ['a reply to a long one', rpc({ id: 'x'.repeat(4097), result: {} }), 'id: has more than 4096 characters', null],
    ['an id that is a list', rpc({ id: [1], method: 'ping' }), 'id: must be a string or a number', null],
    ['parameters of null', rpc({ id: 1, method: 'ping', params: null }), 'params: must be an object', 1],
    ...['tools/call ', ' tools/call', 'Tools/Call', 'tools//call', 'tools\u2215call', 'tools/call\n'].map(
      (method): (typeof refused)[number] => [
        `a method like ${JSON.stringify(method)}`,
        rpc({ id: 1, method, params: { name: 'a' } }),
        'method: must be written tools/call',
        1,
      ],
    ),
    ...[['a'], { a: 1 }, 1, true, null, undefined].map((name): (typeof refused)[number] => [
      `a call of ${JSON.stringify(name)}`,
      rpc({ id: 1, method: 'tools/call', params: { name } }),
      'params.name: must be a string',
      1,
    ]),
    ['a call with a list', rpc({ id: 1, method: 'tools/call', params: ['a', {}] }), 'params: must be an object', 1],
    ['parameters that are a text', rpc({ id: 1, method: 'ping', params: 'a' }), 'params: must be an object', 1],
  ]
  for (const [what, body, message, id] of refused) {
    test(`is not ${what}`, () => {
      const read = () => messageOf(encoded(body))
      expect(read).toThrow(message)
      expect(thrownBy(read)).toMatchObject({ code: 'invalid_request', options: id === null ? {} : { id } })
    })
  }

  test('is not what has no JSON, or says that it is none', async () => {
    expect(thrownBy(() => messageOf(encoded('{')))).toMatchObject({ code: 'parse_error' })
    const read = (type: string) => {
      const headers = { 'content-type': type }
      const request = new Request('http://a/', { method: 'POST', headers, body: '{"jsonrpc":"2.0","method":"a"}' })
      return readMessage(withAllowance(request))
    }
    expect(await read('Application/JSON; charset=utf-8')).toMatchObject({ method: 'a' })
    for (const type of ['text/plain', 'application/jsonp', 'text/event-stream'])
      await expect(read(type)).rejects.toThrow('content-type: must be application/json')
  })
})

function thrownBy(act: () => unknown): unknown {
  try {
    return act()
  } catch (error) {
    expect(error).toBeInstanceOf(PlatformError)
    return error
  }
}

describe('headers of the newer revision', () => {
  const meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': {},
  }
  const asked = async (method: string, params: object, headers: Record<string, string>) => {
    const message = messageOf(encoded({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: meta } }))
    const era = await eraOf(message, new Headers({ 'mcp-protocol-version': '2026-07-28', ...headers }))
    if (!(era instanceof Response)) return era
    const { id, error } = (await era.json()) as { id: unknown; error: { code: number; message: string } }
    expect({ status: era.status, id, code: error.code }).toEqual({ status: 400, id: 1, code: -32_020 })
    return error.message
  }
  const call = { 'mcp-method': 'tools/call', 'mcp-name': 'a' }
  test('say what the body says', async () => {
    expect(await asked('tools/call', { name: 'a' }, call)).toBe('stateless')
    expect(await asked('tools/list', {}, { 'mcp-method': 'tools/list' })).toBe('stateless')
    const resource = { 'mcp-method': 'resources/read', 'mcp-name': 'file:a' }
    expect(await asked('resources/read', { uri: 'file:a' }, resource)).toBe('stateless')
    const spelt = { 'mcp-method': 'tools/call', 'mcp-name': '=?base64?w6k=?=' }
    expect(await asked('tools/call', { name: 'é' }, spelt)).toBe('stateless')
  })
  test('have one spelling, which all decoders read alike', async () => {
    for (const [name, spelt] of [
      ['é', 'w6k'],
      ['a', 'YR=='],
      ['a', 'Y*Q=='],
      ['?>?', 'Pz4_'],
      ['\ufffd', '/w=='],
    ] as const)
      expect(await asked('tools/call', { name }, { ...call, 'mcp-name': `=?base64?${spelt}?=` })).toContain('Mcp-Name')
  })
  test('are refused where they are missing, or say something else', async () => {
    expect(await asked('tools/call', { name: 'a' }, { 'mcp-name': 'a' })).toContain('Mcp-Method')
    expect(await asked('tools/call', { name: 'a' }, { 'mcp-method': 'tools/call' })).toContain('Mcp-Name')
    expect(await asked('tools/call', { name: 'b' }, call)).toContain('Mcp-Name')
    expect(await asked('prompts/get', {}, { 'mcp-method': 'prompts/get', 'mcp-name': 'a' })).toContain('Mcp-Name')
    expect(await asked('tools/list', {}, { 'mcp-method': 'tools/list', 'mcp-name': 'a' })).toContain('Mcp-Name')
    expect(await asked('tools/call', { name: 'a' }, { ...call, 'mcp-method': 'tools/list' })).toBeString()
  })
  test('name the revision of the body, and neither goes without the other', async () => {
    const era = async (params: object, headers: Record<string, string>) => {
      const answer = await eraOf(
        messageOf(encoded({ jsonrpc: '2.0', id: 1, method: 'tools/list', params })),
        new Headers({ 'mcp-method': 'tools/list', ...headers }),
      )
      return answer instanceof Response ? ((await answer.json()) as { error: { code: number } }).error.code : answer
    }
    expect(await era({ _meta: meta }, { 'mcp-protocol-version': '2026-07-28' })).toBe('stateless')
    expect(await era({ _meta: meta }, {})).toBe('stateless')
    expect(await era({ _meta: meta }, { 'mcp-protocol-version': '2025-06-18' })).toBe(-32_020)
    expect(await era({}, { 'mcp-protocol-version': '2026-07-28' })).toBe(-32_602)
    expect(await era({}, {})).toBe('handshake')
    const bare = (params: object, headers: Record<string, string>) =>
      eraOf(messageOf(encoded({ jsonrpc: '2.0', id: 1, method: 'tools/list', params })), new Headers(headers))
    expect(await bare({}, { 'mcp-protocol-version': '2026-07-28' })).toMatchObject({ status: 400 })
    expect(await bare({ _meta: meta }, {})).toMatchObject({ status: 400 })
  })
  test('repeat arguments that are there', async () => {
    const params = { name: 'a', arguments: { at: { region: 'us' }, list: ['x', 5, null] } }
    for (const value of ['us', 'x', '5', 'null', '=?base64?dXM=?='])
      expect(await asked('tools/call', params, { ...call, 'mcp-param-region': value })).toBe('stateless')
    for (const value of ['eu', 'region', '', '=?base64?ZXU=?='])
      expect(await asked('tools/call', params, { ...call, 'mcp-param-region': value })).toContain('mcp-param-region')
  })
  test('are not looked for where nothing speaks of it', async () => {
    const message = messageOf(encoded({ jsonrpc: '2.0', id: 1, method: 'ping' }))
    for (const headers of [{}, { 'mcp-protocol-version': '2025-06-18' }])
      expect(await eraOf(message, new Headers(headers))).toBe('handshake')
    // What is looked at may be of the handshake all the same.
    const progress = messageOf(
      encoded({ jsonrpc: '2.0', id: 1, method: 'ping', params: { _meta: { progressToken: 1 } } }),
    )
    expect(await eraOf(progress, new Headers({ 'mcp-protocol-version': '2025-06-18' }))).toBe('handshake')
  })
})

function keptOf(given: object, headers: Record<string, string>): string[] {
  const params = { name: 'echo', arguments: given }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })
  const named = Object.entries(headers).map(([name, value]): [string, string] => [`Mcp-Param-${name}`, value])
  const kept = withoutAmbiguousParams(new Headers(named), messageOf(new TextEncoder().encode(body)))
  return [...kept.keys()].map((name) => name.slice('mcp-param-'.length))
}

test('only those go on that bear the name of the argument they repeat', () => {
  const given = { tenantId: 'me', note: 'evil', deep: { list: [{ region: 'eu' }, 'x'] }, count: 5 }
  const good = { 'Tenant-Id': 'me', region: 'eu', list: 'x', count: '5' }
  expect(keptOf(given, good).sort()).toEqual(['count', 'list', 'region', 'tenant-id'])
  expect(keptOf(given, { 'Tenant-Id': 'evil', note: 'me', region: 'x' })).toEqual([])
  expect(keptOf(given, { note: 'me' })).toEqual([])
})

test('a name that arguments of several values have goes on with none of them', () => {
  for (const given of [
    { owner: 'me', x: { owner: 'evil' } },
    { owner: 'me', x: [{ owner: 'evil' }] },
    { a: { owner: 'me' }, owner: 'evil' },
    { owner: 'me', Owner_: 'evil' },
    { owner: ['me', 'evil'] },
  ])
    for (const owner of ['me', 'evil']) expect(keptOf(given, { owner })).toEqual([])
  expect(keptOf({ owner: 'me', x: { owner: 'me' } }, { owner: 'me' })).toEqual(['owner'])
})

test('texts below a long key are looked at with it once, and two thousand at most', async () => {
  // Its name was made anew for each: ten gigabytes.
  const given = (length: number) => ({
    owner: 'me',
    [`x${'y'.repeat(100_000)}`]: Array.from({ length }, () => 1),
  })
  expect(keptOf(given(1900), { owner: 'me', other: '1' })).toEqual(['owner'])
  expect(keptOf(given(100_000), { owner: 'me', other: '1' })).toEqual([])
  const meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'c', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': {},
  }
  const params = { name: 'a', arguments: given(100_000), _meta: meta }
  const message = messageOf(encoded({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }))
  const headers = new Headers({ 'mcp-method': 'tools/call', 'mcp-name': 'a', 'mcp-param-owner': 'me' })
  headers.set('mcp-protocol-version', '2026-07-28')
  const refused = (await eraOf(message, headers)) as Response
  expect([refused.status, await refused.text()]).toEqual([400, expect.stringContaining('more than 2000 values')])
})

test('a key of a hundred thousand marks is no field of MCP, and looked past', () => {
  const marks = '\u0315'.repeat(5e4) + '\u0300'.repeat(5e4)
  const text = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping', params: { [marks]: 1 }, [`a${marks}`]: 1 })
  expect(messageOf(new TextEncoder().encode(text)).method).toBe('ping')
  const caseVariant = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping', '\u{1d526}\u{1d521}': 2 })
  expect(() => messageOf(new TextEncoder().encode(caseVariant))).toThrow('id: another key differs from it only in case')
  // The longest field, in letters of two units each.
  const longest = [...'arguments'].map((letter) => String.fromCodePoint(0x1d51e + letter.charCodeAt(0) - 97)).join('')
  const params = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping', params: { [longest]: {} } })
  expect(() => messageOf(new TextEncoder().encode(params))).toThrow('arguments: another key differs from it only in')
})

test('a key that is one of JSON-RPC but for its punctuation is refused, and none of the parameters', () => {
  const bytes = (message: object) => new TextEncoder().encode(JSON.stringify({ jsonrpc: '2.0', id: 1, ...message }))
  for (const key of ['_method', 'method ', 'me-thod', 'method\ufeff', '\u200bmethod'])
    expect(() => messageOf(bytes({ result: {}, [key]: 'tools/call' }))).toThrow('method: another key differs from it')
  expect(messageOf(bytes({ method: 'ping', params: { meta: 1, na_me: 2 }, extra: 1 })).method).toBe('ping')
})

test('keys that take long to normalize are refused before they are', () => {
  const normalize = spyOn(String.prototype, 'normalize')
  const keys = Array.from({ length: 19_900 }, (_, index) => [`a${'\u0315\u0300'.repeat(14)}${index}`, 1])
  const text = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping', ...Object.fromEntries(keys) })
  expect(() => messageOf(new TextEncoder().encode(text))).toThrow('the message has too many keys besides those')
  expect(normalize.mock.calls.length).toBeLessThan(1000)
  normalize.mockRestore()
})

test('no keys are made of parameters that are a list', () => {
  using keys = spyOn(Object, 'keys')
  const list = Array.from({ length: 1000 }, () => 1)
  const bytes = new TextEncoder().encode(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping', params: list }))
  expect(() => messageOf(bytes)).not.toThrow()
  expect(keys.mock.calls.some(([object]) => Array.isArray(object))).toBe(false)
})
