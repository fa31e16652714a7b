/** Mocked connections: the same answer to the same call, valid, recorded ones first, held to the token like any other. */

import { describe, expect, spyOn, test } from 'bun:test'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { generateSync } from 'json-schema-faker'
import { apiKeyDigest, revokeApiKey } from '../../../src/auth/api-key.ts'
import { Allowance } from '../../../src/fairness/allowance.ts'
import { createFairness, type Fairness } from '../../../src/fairness/fairness.ts'
import { Shares } from '../../../src/fairness/shares.ts'
import { madeUpCharsMax, madeUpItemsMax } from '../../../src/features/mocks/generate-result.ts'
import { sliceCost } from '../../../src/limits.ts'
import { sampleSources } from '../../../src/maintenance/seed/sample.ts'
import type { ServerDetail } from '../../../src/model/server.ts'
import { keyOf } from '../../../src/storage/keys.ts'
import { mintToken } from '../../api/cases.ts'
import { createTestPlatform, source, type TestPlatform } from '../../support/platform.ts'
import { sampleKeys } from '../../support/sample.ts'

interface Answered {
  readonly status: number
  readonly body: { readonly result: Record<string, unknown>; readonly error?: { code: number; message: string } }
}

async function rpc(
  platform: TestPlatform,
  place: string,
  method: string,
  params: object = {},
  credential: string = sampleKeys.operator,
): Promise<Answered> {
  const response = await platform.fetch(`/connect/${place}/mcp`, {
    method: 'POST',
    headers: { authorization: `Bearer ${credential}`, 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 7, method, params }),
  })
  const text = await response.text()
  const json = text.startsWith('event:') ? text.slice(text.indexOf('data: ') + 6) : text
  return { status: response.status, body: JSON.parse(json) }
}
const callTool = (platform: TestPlatform, place: string, name: string, given: object, credential?: string) =>
  rpc(platform, place, 'tools/call', { name, arguments: given }, credential)

/** One server with one tool, mocked in the namespace `ada`, with and without a scenario. */
const made = (tool: object, mocks: object[] = [], options: { fairness?: Fairness } = {}) =>
  createTestPlatform({
    ...options,
    sources: [
      ...sampleSources(),
      source('made.json', {
        servers: [
          {
            qualifiedName: 'ada/made',
            displayName: 'Made',
            description: 'Made for a test.',
            remote: true,
            connections: [],
            tools: [{ name: 'do', description: 'Does it.', inputSchema: { type: 'object' }, ...tool }],
          },
        ],
        connections: [
          {
            namespace: 'ada',
            connectionId: 'made',
            mcpUrl: 'https://made.example.com/mcp',
            server: 'ada/made',
            mock: { enabled: true },
          },
          {
            namespace: 'ada',
            connectionId: 'told',
            mcpUrl: 'https://made.example.com/mcp',
            server: 'ada/made',
            mock: { enabled: true, scenario: 'Lighthouse Seven went dark: the keeper rows ashore' },
          },
        ],
        mocks: mocks.map((mock) => ({ server: 'ada/made', tool: 'do', ...mock })),
      }),
    ],
  })

describe('no schema holds up the rest', () => {
  const lists = (levels: number, minItems: number): object =>
    levels === 0 ? { type: 'string' } : { type: 'array', minItems, items: lists(levels - 1, minItems) }
  const tree = {
    $defs: { node: { type: 'object', required: ['a', 'b', 'c', 'd', 'e'], properties: {} as Record<string, object> } },
    type: 'object',
    required: ['x'],
    properties: { x: { $ref: '#/$defs/node' } },
  }
  for (const name of 'abcde') tree.$defs.node.properties[name] = { $ref: '#/$defs/node' }
  const through = (schema: object) => ({ type: 'object', required: ['x'], properties: { x: schema } })
  const chain = {
    $defs: { one: lists(1, 100), two: { type: 'array', minItems: 100, items: { $ref: '#/$defs/one' } } },
    ...through({ type: 'array', minItems: 100, items: { $ref: '#/$defs/two' } }),
  }
  const tooLarge: Record<string, object> = {
    'lists in lists': through(lists(3, 100)),
    'a text': through({ type: 'string', minLength: 30_000 }),
    // Each level makes five times as many, and the first takes all time that there is.
    'a pattern of repetitions': through({ type: 'string', pattern: `${'('.repeat(30)}a${')+'.repeat(30)}` }),
    'a pattern that is long itself': through({
      type: 'array',
      minItems: 3000,
      items: { type: 'string', pattern: '^'.repeat(400), maxLength: 1 },
    }),
    'texts that are made again until one is short': through({
      type: 'array',
      minItems: 3000,
      items: { type: 'string', pattern: '^[^a]{300}', maxLength: 1 },
    }),
    'lists by reference': chain,
    'references that come back': tree,
  }
  for (const [what, outputSchema] of Object.entries(tooLarge)) {
    test(`${what} of too many parts are not made up`, async () => {
      const answer = await callTool(await made({ outputSchema }), 'ada/made', 'do', {})
      expect(answer.body.error?.message).toContain('record an answer in a fixture')
    })
  }
  test('a message repeats only the beginning of a long name', async () => {
    const answer = await callTool(await made({}), 'ada/made', 'x'.repeat(100_000), {})
    expect(answer.body.error?.message).toBe(`there is no tool "${'x'.repeat(199)}…"`)
  })
  test('references that end are followed', async () => {
    const list = {
      type: 'object',
      required: ['next'],
      properties: { next: { anyOf: [{ type: 'null' }, { $ref: '#' }] } },
    }
    expect((await callTool(await made({ outputSchema: list }), 'ada/made', 'do', {})).body.error).toBeUndefined()
  })

  const unique = { inputSchema: through({ type: 'array', uniqueItems: true }) }
  test('unique items are told in one look at each', async () => {
    const platform = await made(unique)
    const problemOf = async (x: unknown[]) => {
      const { result } = (await callTool(platform, 'ada/made', 'do', { x })).body
      return result['isError'] === true ? (result as { content: { text: string }[] }).content[0]?.text : undefined
    }
    const many = Array.from({ length: 5000 }, (_, a) => ({ a, b: [a] }))
    expect(await problemOf(many)).toBeUndefined()
    expect(await problemOf([...many, { b: [7], a: 7 }])).toContain('must not have the same item twice')
    expect(await problemOf([1, '1', true, 'true', null, 'null', [1], ['1'], {}, []])).toBeUndefined()
    expect(await problemOf([{ a: [1.0] }, { a: [1] }])).toContain('twice')
    // Each look takes as long as ten keywords.
    expect(await problemOf(Array.from({ length: 48_000 }, (_, a) => [[a]]))).toContain('too large to check')
  })

  test('patterns over much text are given up on', async () => {
    const inputSchema = through({ type: 'array', items: { type: 'string', pattern: '^[ab]*a[ab]{400}$' } })
    const platform = await made({ inputSchema })
    const problemOf = async (x: unknown[]) => (await callTool(platform, 'ada/made', 'do', { x })).body.result
    expect(JSON.stringify(await problemOf(['a'.repeat(450)]))).not.toContain('isError')
    expect(JSON.stringify(await problemOf(['ab'.repeat(100_000)]))).toContain(
      'take too long to check against the patterns',
    )
    const many = Array.from({ length: 500 }, () => 'a'.repeat(450))
    expect(JSON.stringify(await problemOf(many))).toContain('take too long')
  })

  test('of many mistakes ten are told', async () => {
    const platform = await made({ inputSchema: through({ type: 'array', items: { type: 'string' } }) })
    const told = async (count: number) => {
      const { result } = (await callTool(platform, 'ada/made', 'do', { x: Array.from({ length: count }, () => 7) }))
        .body
      return (result as { content: { text: string }[] }).content[0]?.text.split('; ').length
    }
    expect([await told(20), await told(30_000)]).toEqual([10, 10])
  })
})

describe('an answer', () => {
  test('of every tool of the sample is valid, and the same whatever the order of keys and whichever process', async () => {
    const [one, other] = [await createTestPlatform(), await createTestPlatform()]
    const ajv = new Ajv2020({ strict: false })
    addFormats.default(ajv)
    const servers = sampleSources().flatMap(
      ({ read }) => (JSON.parse(Buffer.from(read()).toString()) as { servers?: ServerDetail[] }).servers ?? [],
    )
    let looked = 0
    for (const { qualifiedName, tools } of servers) {
      if (qualifiedName.includes('/') === false && tools === null) continue
      for (const platform of [one, other]) {
        await platform.fetch('/connect/ada/m', {
          method: 'DELETE',
          headers: { authorization: `Bearer ${sampleKeys.operator}` },
        })
        const put = await platform.fetch('/connect/ada/m', {
          method: 'PUT',
          headers: { authorization: `Bearer ${sampleKeys.operator}`, 'content-type': 'application/json' },
          body: JSON.stringify({ server: qualifiedName, mock: { enabled: true, scenario: 'A quiet week' } }),
        })
        expect(put.status).toBe(201)
      }
      for (const tool of tools ?? []) {
        for (const seed of [1, 2, 3]) {
          const given = generateSync(tool.inputSchema as never, { seed, optionalsProbability: 0.5 }) as Record<
            string,
            unknown
          >
          if (!ajv.validate(tool.inputSchema, given)) continue
          const turned = Object.fromEntries(Object.entries(given).reverse())
          const [first, second] = [
            await callTool(one, 'ada/m', tool.name, given),
            await callTool(other, 'ada/m', tool.name, turned),
          ]
          expect(first).toEqual(second)
          const { result, error } = first.body
          expect({ tool: tool.name, error }).toEqual({ tool: tool.name, error: undefined as never })
          expect({ tool: tool.name, isError: result['isError'] }).toEqual({ tool: tool.name, isError: undefined })
          const { outputSchema } = tool as { outputSchema?: object }
          if (outputSchema !== undefined) {
            const isValid = ajv.validate(outputSchema, result['structuredContent'])
            expect({ tool: tool.name, isValid, errors: ajv.errors ?? [] }).toEqual({
              tool: tool.name,
              isValid: true,
              errors: [],
            })
            expect(JSON.parse((result as { content: { text: string }[] }).content[0]?.text ?? '')).toEqual(
              result['structuredContent'],
            )
          }
          looked += 1
        }
      }
    }
    expect(looked).toBeGreaterThan(60)
  })

  const outputSchema = {
    type: 'object',
    required: ['city', 'email', 'summary', 'description', 'code', 'sku', 'price', 'items', 'kind', 'on'],
    properties: {
      city: { type: 'string' },
      email: { type: 'string' },
      summary: { type: 'string' },
      description: { type: 'string', maxLength: 20 },
      code: { type: 'string', pattern: '^[A-Z]{2}-\\d{3}$' },
      sku: { type: 'string' },
      price: { type: 'number', minimum: 0, maximum: 500 },
      items: { type: 'array', items: { type: 'string', format: 'uuid' } },
      kind: { enum: ['a', 'b'] },
      on: { type: 'string', format: 'date' },
    },
  }

  test('looks like its fields, says what it was asked about, and tells the scenario', async () => {
    const platform = await made({ outputSchema })
    const { result } = (await callTool(platform, 'ada/told', 'do', { sku: 'NW-1' })).body
    const value = result['structuredContent'] as Record<string, string>
    expect(value['sku']).toBe('NW-1')
    expect(value['email']).toMatch(/@example\.(?:com|org|net)$/)
    expect(value['city']).toMatch(/^\p{Lu}/u)
    expect(['Lighthouse Seven went dark', 'The keeper rows ashore']).toContain(value['summary'] as string)
    expect(value['description']).toBe('Lighthouse Seven wen')
    expect(value['on']).toMatch(/^2026-/)
    expect(String(value['price'])).toMatch(/^\d+(?:\.\d{1,2})?$/)
    // Another scenario, other arguments: another answer.
    const others = [
      await callTool(platform, 'ada/made', 'do', { sku: 'NW-1' }),
      await callTool(platform, 'ada/told', 'do', { sku: 'NW-2' }),
    ]
    for (const other of others) expect(other.body.result['structuredContent']).not.toEqual(value as never)
    expect(JSON.stringify(others[0]?.body)).not.toContain('Lighthouse')
  })

  test('of a tool without an output schema is a text that tells the scenario', async () => {
    const platform = await made({})
    expect((await callTool(platform, 'ada/told', 'do', {})).body.result).toEqual({
      content: [{ type: 'text', text: 'do: Lighthouse Seven went dark: the keeper rows ashore' }],
    })
    expect((await callTool(platform, 'ada/made', 'do', {})).body.result).toEqual({
      content: [{ type: 'text', text: 'do: Does it.' }],
    })
  })

  test('is one of the examples of the output schema, where one is valid', async () => {
    const examples = [{ n: 'not a number' }, { n: 1 }, { n: 2 }]
    const platform = await made({ outputSchema: { type: 'object', properties: { n: { type: 'integer' } }, examples } })
    const seen = new Set<unknown>()
    for (let i = 0; i < 20; i += 1) {
      const { result } = (await callTool(platform, 'ada/made', 'do', { i })).body
      seen.add((result['structuredContent'] as { n: unknown }).n)
    }
    expect(seen).toEqual(new Set([1, 2]))
  })

  test('fits the call: arguments and defaults are echoed, names too, and dates ascend', async () => {
    const date = { type: 'string', format: 'date' }
    const platform = await made({
      inputSchema: {
        type: 'object',
        properties: { location: { type: 'string' }, units: { enum: ['metric', 'imperial'], default: 'metric' } },
      },
      outputSchema: {
        type: 'object',
        properties: {
          location: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
          units: { type: 'string', enum: ['metric', 'imperial'] },
          days: { type: 'array', minItems: 6, items: { type: 'object', properties: { date }, required: ['date'] } },
        },
        required: ['location', 'units', 'days'],
      },
    })
    for (const [given, units] of [
      [{ location: 'Paris' }, 'metric'],
      [{ location: 'Rome' }, 'metric'],
      [{ location: 'Oslo', units: 'imperial' }, 'imperial'],
      [{ location: 'Bern', units: 'metric' }, 'metric'],
    ] as const) {
      const { result } = (await callTool(platform, 'ada/made', 'do', given)).body
      const shown = result['structuredContent'] as { days: { date: string }[] }
      expect(shown).toMatchObject({ location: { name: given.location }, units })
      const dates = shown.days.map((day) => day.date)
      expect(dates).toEqual([...dates].sort())
    }
  })

  test('that was recorded comes first, where the call holds its arguments', async () => {
    const platform = await made({ outputSchema }, [
      { arguments: { order: { number: 'SO-1' } }, result: { content: [{ type: 'text', text: 'the first' }] } },
      { arguments: { order: {}, list: [1, 2] }, result: { structuredContent: { a: 1 } }, delayMs: 250 },
      {
        arguments: { order: { number: 'SO-2' } },
        error: { code: -32_050, message: 'closed', data: { why: 'stock-taking' } },
      },
    ])
    const call = async (given: object) => (await callTool(platform, 'ada/made', 'do', given)).body
    expect((await call({ order: { number: 'SO-1', at: 1 }, more: true })).result).toEqual({
      content: [{ type: 'text', text: 'the first' }],
    })
    expect(platform.waited).toEqual([])
    expect((await call({ list: [1, 2], order: { x: 1 } })).result).toEqual({
      content: [{ type: 'text', text: '{"a":1}' }],
      structuredContent: { a: 1 },
    })
    expect(platform.waited).toEqual([250])
    expect((await call({ order: { number: 'SO-2' } })).error).toEqual({
      code: -32_050,
      message: 'closed',
      data: { why: 'stock-taking' },
    } as never)
    for (const given of [{}, { list: [2, 1], order: {} }, { order: 'SO-1' }]) {
      expect(Object.keys((await call(given)).result['structuredContent'] ?? {})).toContain('city')
    }
  })

  test('that took its time is not given to a caller who was revoked meanwhile', async () => {
    const delayed = { arguments: {}, result: { content: [{ type: 'text', text: 'late' }] }, delayMs: 60_000 }
    const platform = await made({ outputSchema }, [delayed])
    platform.whileWaiting = async () => {
      platform.now += 60_000
      const keyId = await platform.store.get(keyOf('apiKeyDigest', apiKeyDigest(platform.pepper, sampleKeys.ada)))
      await revokeApiKey(platform.store, Buffer.from(keyId ?? '').toString(), new Date(platform.now))
    }
    expect((await callTool(platform, 'ada/made', 'do', {}, sampleKeys.ada)).status).toBe(401)
  })

  test('to arguments that the tool does not take says what is wrong, for the model to read', async () => {
    const inputSchema = {
      type: 'object',
      required: ['a'],
      additionalProperties: false,
      properties: { a: { type: 'string', pattern: '^x' }, b: { enum: [1, 2] } },
    }
    const platform = await made({ inputSchema })
    const rows: [object, string][] = [
      [{}, "arguments must have required property 'a'"],
      [{ a: 'y' }, 'arguments.a must match pattern "^x"'],
      [{ a: 'x', b: 3 }, 'arguments.b must be one of [1,2]'],
      [{ a: 'x', c: 3 }, 'arguments has an unknown field "c"'],
      [{ b: 3 }, "arguments must have required property 'a'; arguments.b must be one of [1,2]"],
    ]
    for (const [given, text] of rows) {
      expect((await callTool(platform, 'ada/made', 'do', given)).body.result).toEqual({
        content: [{ type: 'text', text }],
        isError: true,
      })
    }
  })

  test('cannot be made to run a pattern that never ends, nor a schema that refers elsewhere', async () => {
    const hard = {
      type: 'object',
      properties: { a: { type: 'string', pattern: '^(a+)+$' } },
      patternProperties: { '^(b+)+$': {} },
    }
    const platform = await made({ inputSchema: hard, outputSchema: { ...hard, required: ['a'] } })
    const given = { a: `${'a'.repeat(50_000)}!`, [`${'b'.repeat(1000)}!`]: 1 }
    expect((await callTool(platform, 'ada/made', 'do', given)).body.result['isError']).toBe(true)
    expect((await callTool(platform, 'ada/made', 'do', { a: 'aa' })).body.result['structuredContent']).toBeDefined()
    // Look-around is no RE2: arguments are not held to it, and of a result nobody could say that it fits.
    const beyond = {
      type: 'object',
      required: ['a'],
      properties: { a: { type: 'string', pattern: '^(?=.*a)[a-c]{4}$' } },
    }
    const loose = await made({ inputSchema: beyond, outputSchema: beyond })
    expect((await callTool(loose, 'ada/made', 'do', { a: 'zzz' })).body.error?.message).toContain(
      'RE2 does not know the pattern',
    )
    // The faker has keywords of its own, one of which repeats other fields.
    const repeating = { type: 'string', template: '#{b}'.repeat(1000) }
    const repeated = {
      type: 'object',
      required: ['a', 'b'],
      properties: { a: repeating, b: { type: 'string', pattern: '^b{9}$' } },
    }
    const { structuredContent } = (await callTool(await made({ outputSchema: repeated }), 'ada/made', 'do', {})).body
      .result
    expect(structuredContent).toMatchObject({ b: 'bbbbbbbbb', a: expect.not.stringContaining('bbb') })
    const anything = {
      type: 'object',
      required: ['a'],
      properties: { a: { $ref: '#/$defs/any' } },
      $defs: { any: true },
    }
    const any = (await callTool(await made({ outputSchema: anything }), 'ada/made', 'do', {})).body.result
    expect(any['structuredContent']).toHaveProperty('a')
    for (const schema of [
      { inputSchema: { type: 'object', $ref: 'https://example.com/x' } },
      { outputSchema: { type: 'object', $ref: 'https://example.com/x' } },
    ]) {
      const { error } = (await callTool(await made(schema), 'ada/made', 'do', {})).body
      expect(error).toMatchObject({ code: -32_603, message: expect.stringContaining('cannot be used') })
    }
    const never = { type: 'object', required: ['a'], properties: { a: { type: 'string' } }, not: { required: ['a'] } }
    expect((await callTool(await made({ outputSchema: never }), 'ada/made', 'do', {})).body.error?.message).toContain(
      'record an answer in a fixture',
    )
  })
})

describe('a mocked connection', () => {
  test('is held to the token like any other', async () => {
    const platform = await createTestPlatform()
    const policy = [{ operations: 'execute', rpcReqMatch: { method: '^tools/', 'params.name': '^get_' } }]
    const token = await mintToken(platform.fetch, sampleKeys.ada, { policy })
    const place = 'northwind/weather-ada'
    const { result } = (await rpc(platform, place, 'tools/list', {}, token)).body
    expect((result['tools'] as { name: string }[]).map(({ name }) => name)).toEqual([
      'get_forecast',
      'get_current_conditions',
    ])
    expect((await callTool(platform, place, 'get_forecast', { location: 'Zermatt' }, token)).status).toBe(200)
    const refused = await callTool(platform, place, 'list_alerts', { region: 'us-west' }, token)
    expect(refused).toMatchObject({ status: 403, body: { error: { code: -32_003 } } })
    const reader = await mintToken(platform.fetch, sampleKeys.ada, { policy: [{ operations: 'read' }] })
    expect((await callTool(platform, place, 'get_forecast', { location: 'Zermatt' }, reader)).status).toBe(403)
    expect((await callTool(platform, place, 'get_forecast', {}, sampleKeys.jonas)).status).toBe(404)
  })

  test('says what an initialize lacks', async () => {
    const platform = await createTestPlatform()
    const { body } = await rpc(platform, 'northwind/weather-ada', 'initialize', {})
    expect(body).toMatchObject({ error: { code: -32_602, message: expect.stringContaining('protocolVersion') } })
  })

  test('has resources and prompts, and says what it does not have', async () => {
    const platform = await createTestPlatform()
    const place = 'northwind/weather-ada'
    const { resources } = (await rpc(platform, place, 'resources/list')).body.result as { resources: { uri: string }[] }
    expect(resources.length).toBe(2)
    for (const { uri } of resources) {
      const { contents } = (await rpc(platform, place, 'resources/read', { uri })).body.result as {
        contents: { uri: string; text: string }[]
      }
      expect(contents[0]).toMatchObject({ uri, text: expect.stringContaining('A cold front reaches the Cascades') })
    }
    const { prompts } = (await rpc(platform, place, 'prompts/list')).body.result as {
      prompts: { name: string; arguments?: { name: string; required?: boolean }[] }[]
    }
    const [prompt] = prompts
    const given = Object.fromEntries((prompt?.arguments ?? []).map(({ name }) => [name, 'x']))
    const got = await rpc(platform, place, 'prompts/get', { name: prompt?.name, arguments: given })
    expect(JSON.stringify(got.body.result)).toContain('A cold front')
    const many = Array.from({ length: 1000 }, (_, index) => [`a${index}`, 'x'])
    const rows: [string, object, number][] = [
      ['prompts/get', { name: prompt?.name, arguments: {} }, -32_602],
      ['prompts/get', { name: 'none' }, -32_602],
      ['resources/read', { uri: 'none://x' }, -32_602],
      ['tools/call', { name: 'none', arguments: {} }, -32_602],
      ['completion/complete', {}, -32_601],
      // The official package would validate them in one piece.
      ['prompts/get', { name: prompt?.name, arguments: { ...given, ...Object.fromEntries(many) } }, -32_602],
    ]
    for (const [method, params, code] of rows) {
      expect({ method, code: (await rpc(platform, place, method, params)).body.error?.code }).toEqual({ method, code })
    }
  })

  test('of a server that is gone says so', async () => {
    const platform = await made({})
    const { store } = platform
    await store.commit({ deletes: [keyOf('server', 'ada/made')] })
    expect(await callTool(platform, 'ada/made', 'do', {})).toMatchObject({
      status: 502,
      body: { error: { message: 'The server that this connection mocks is no longer registered: register it again' } },
    })
  })

  for (const versions of [undefined, ['2025-11-25'], ['2025-03-26']]) {
    test(`answers the official client (${versions ?? 'its own choice of revision'})`, async () => {
      const platform = await createTestPlatform()
      const client = new Client(
        { name: 'test', version: '1' },
        versions === undefined ? {} : { supportedProtocolVersions: versions },
      )
      const transport = new StreamableHTTPClientTransport(
        new URL('http://localhost:8787/connect/northwind/weather-ada/mcp'),
        {
          requestInit: { headers: { authorization: `Bearer ${sampleKeys.ada}` } },
          fetch: (url, init) => platform.fetch(new URL(url).pathname, init as RequestInit),
        },
      )
      await client.connect(transport)
      expect(client.getServerVersion()).toMatchObject({ name: 'northwind/weather', title: 'Weather' })
      expect((await client.listTools()).tools.length).toBe(4)
      // The client checks the result against the tool's output schema itself.
      const { structuredContent } = await client.callTool({
        name: 'get_forecast',
        arguments: { location: 'Oslo', days: 1 },
      })
      expect(structuredContent).toMatchObject({ units: expect.any(String) })
      await client.close()
    })
  }
})

test('a made-up result has as much as is useful, whatever its schema allows', async () => {
  const outputSchema = {
    type: 'object',
    required: ['text', 'list', 'map', 'long'],
    additionalProperties: false,
    properties: {
      text: { type: 'string', maxLength: 1e9 },
      long: { type: 'string', minLength: 300, maxLength: 1e9 },
      list: { type: 'array', maxItems: 1e7, items: { type: 'array', maxItems: 1e6, items: { type: 'integer' } } },
      map: { type: 'object', minProperties: 1, maxProperties: 1e6, additionalProperties: { type: 'string' } },
    },
  }
  const { body } = await callTool(await made({ outputSchema }), 'ada/made', 'do', {})
  const { text, long, list, map } = body.result['structuredContent'] as {
    text: string
    long: string
    list: unknown[][]
    map: object
  }
  expect(text.length).toBeLessThanOrEqual(madeUpCharsMax)
  expect(long.length).toBeGreaterThanOrEqual(300)
  expect(long.length).toBeLessThanOrEqual(301 + madeUpCharsMax)
  expect(list.length).toBeLessThanOrEqual(madeUpItemsMax)
  for (const items of list) expect(items.length).toBeLessThanOrEqual(madeUpItemsMax)
  expect(Object.keys(map).length).toBeLessThanOrEqual(madeUpItemsMax)
})

test('a large list counts for its caller until it is read, and while it waits to be narrowed', async () => {
  const tools = { description: 'd'.repeat(60_000), inputSchema: { type: 'object', title: 't'.repeat(300_000) } }
  const policy = [{ rpcReqMatch: { 'params.name': '^do' } }]
  // A quarter is one token's.
  for (const [isNarrowed, bytes, status] of [
    [false, 4 * 300_000, 429],
    [false, 4 * 500_000, 200],
    [true, 4 * 1_200_000, 429],
    [true, 4 * 5_000_000, 200],
  ] as const) {
    const fairness = createFairness()
    const platform = await made(tools, [], { fairness })
    const credential = isNarrowed ? await mintToken(platform.fetch, sampleKeys.ada, { policy }) : sampleKeys.ada
    // Reading the server takes more than its list, once.
    expect((await rpc(platform, 'ada/made', 'prompts/list')).status).toBe(200)
    Object.assign(fairness, { memory: new Shares(bytes) })
    const list = await rpc(platform, 'ada/made', 'tools/list', {}, credential)
    expect({ bytes, status: list.status }).toEqual({ bytes, status })
    // All of it is given back.
    expect(fairness.memory.take({ keyId: 'k', family: 'k' }, bytes / 4)).toBe(true)
  }
})

test('a schema whose references multiply is not made up', async () => {
  const $defs = Object.fromEntries(
    Array.from({ length: 12 }, (_, i) => [`a${i}`, { allOf: Array(3).fill({ $ref: `#/$defs/a${i + 1}` }) }]),
  )
  const outputSchema = { type: 'object', $ref: '#/$defs/a0', $defs: { ...$defs, a12: { type: 'object' } } }
  const { body } = await callTool(await made({ outputSchema }), 'ada/made', 'do', {})
  expect(body.error?.message).toContain('record an answer')
})

test('an answer of megabytes is written in its caller’s turns', async () => {
  const fairness = createFairness()
  const costs: number[] = []
  const turns = {
    run<T>(_: unknown, work: Generator<number, T>): T {
      for (;;) {
        const step = work.next()
        if (step.done) return step.value
        costs.push(step.value)
      }
    },
  }
  const schema = (more: object) => ({ type: 'object', properties: { p: more } })
  const costOf = async (length: number) => {
    const tool = {
      inputSchema: schema({ default: '\t'.repeat(length) }),
      outputSchema: { ...schema({ type: 'string' }), required: ['p'] },
    }
    const platform = await made(tool, [], { fairness: { ...fairness, turns: turns as never } })
    // The first call reads the server.
    await callTool(platform, 'ada/made', 'do', { other: 1 })
    costs.length = 0
    const { result } = (await callTool(platform, 'ada/made', 'do', {})).body
    expect(result['structuredContent']).toEqual({ p: '\t'.repeat(length) })
    return Math.max(...costs)
  }
  expect([await costOf(10), await costOf(500_000)].map((cost) => cost > sliceCost / 2)).toEqual([false, true])
})

test('a mocked server is parsed with all its recorded answers, and not again when others change something', async () => {
  const answers = Array.from({ length: 100 }, (_, i) => ({
    arguments: { i },
    result: { content: [{ type: 'text', text: 'x'.repeat(1000) }] },
  }))
  const platform = await made({}, answers)
  using parse = spyOn(Allowance.prototype, 'parse')
  const parsed = async () => {
    parse.mockClear()
    expect((await callTool(platform, 'ada/made', 'do', { i: 7 })).status).toBe(200)
    return parse.mock.calls.some(([characters]) => characters > 100_000)
  }
  expect(await parsed()).toBe(true)
  const token = await mintToken(platform.fetch, sampleKeys.grace, {})
  const revoke = {
    method: 'POST',
    headers: { authorization: `Bearer ${sampleKeys.grace}`, 'content-type': 'application/json' },
  }
  expect((await platform.fetch('/tokens/revoke', { ...revoke, body: JSON.stringify({ token }) })).status).toBe(200)
  expect(await parsed()).toBe(false)
})
