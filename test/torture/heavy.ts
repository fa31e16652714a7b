/**
 * Bodies, answers, policies and paths of the largest size allowed, made of one thing over and over, and of products of
 * chance. Whatever one caller or one upstream sends, somebody else's `/health` is answered meanwhile, and memory stays
 * within a bound.
 */

import {
  parsedResponseCharsMax,
  requestBodyBytesMax,
  rpcBodyBytesMax,
  serverBodyBytesMax,
  upstreamResponseBytesMax,
} from '../../src/limits.ts'
import { introspectionBytesMax } from '../../src/upstream/introspect.ts'
import { mintToken } from '../api/cases.ts'
import { anonymousMemory } from '../bench/measure.ts'
import { sendTo, startServer, withoutRates, workplace } from '../support/executable.ts'
import { type Random, random } from '../support/random.ts'
import { fixturesIn } from '../support/workplace.ts'
import { Prober } from './prober.ts'
import { collector, type Trial } from './trial.ts'

/** Longer than the server beside it, which does nothing, by so much. */
const waitMaxMs = 100
const memoryMaxMegabytes = 600

const key = 'a-key-of-mallory-for-this-trial-0001'
const operator = 'an-operator-key-for-this-trial-alone-0002'

/** Texts of one thing over and over. JSON, most of them; what is cut off at the end is not. */
const things: Readonly<Record<string, (bytes: number) => string>> = {
  'one letter': (bytes) => quoted('a'.repeat(bytes)),
  zeros: (bytes) => `1${'0'.repeat(bytes)}1`,
  'digits after the point': (bytes) => `0.${'10'.repeat(bytes / 2)}1`,
  numbers: (bytes) => listOf('1e5', bytes),
  'numbers that are not exact': (bytes) => listOf('12345678901234567890.5', bytes),
  escapes: (bytes) => quoted('\\u00e9'.repeat(bytes / 6)),
  marks: (bytes) => quoted('\u0301\u0323'.repeat(bytes / 4)),
  'marks of two classes': (bytes) => quoted('\u0344'.repeat(bytes / 4) + '\u0323'.repeat(bytes / 4)),
  words: (bytes) => quoted(Array.from({ length: bytes / 8 }, (_, i) => `aaa${i.toString(36)}`).join(' ')),
  'halves of pairs': (bytes) => quoted('\\ud83d\\ude00'.repeat(bytes / 12)),
  backslashes: (bytes) => quoted('\\\\'.repeat(bytes / 2)),
  quotes: (bytes) => listOf('""', bytes),
  'open lists': (bytes) => '['.repeat(bytes),
  'open objects': (bytes) => '{"a":'.repeat(bytes / 5),
  lists: (bytes) => listOf('[]', bytes),
  objects: (bytes) => listOf('{}', bytes),
  'objects alike': (bytes) => listOf('{"a":1,"b":"x"}', bytes),
  keys: (bytes) => `{${Array.from({ length: bytes / 11 }, (_, i) => `"k${i.toString(36)}":0`).join()}}`,
  'numbers as keys': (bytes) => `{${Array.from({ length: bytes / 11 }, (_, i) => `"${i * 7919}":0`).join()}}`,
  'keys alike': (bytes) => `{${Array.from({ length: bytes / 18 }, (_, i) => `"ﬀ${'aA'[i % 2]}${i}":0`).join()}}`,
  spaces: (bytes) => `${' '.repeat(bytes)}1`,
  nothing: () => '',
}
const quoted = (text: string) => `"${text}"`
const listOf = (item: string, bytes: number) => `[${`${item},`.repeat(bytes / (item.length + 1))}0]`

/** As large as `bytes` at the most, in a text that has a place for it. */
function filled(frame: string, thing: (bytes: number) => string, bytes: number): string {
  return frame.replace('…', () => thing(Math.max(0, bytes - frame.length - 40))).slice(0, bytes)
}

const call = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"do","arguments":{"x":…}}}'
const list = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
/** Frames for what an upstream answers. */
const answers = [
  '…',
  '{"jsonrpc":"2.0","id":1,"result":…}',
  '{"jsonrpc":"2.0","id":1,"result":{"tools":…}}',
  '{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":…}]}}',
  '{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":…}]}}',
  '{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":…}}',
]
const patterns = ['(a|b)*a(a|b){280}', 'a.{900}', '(?:\\w+\\s*){200}x', '[^b]*b[^c]*c', '(?i)[a-z]{300}', '^a+$']

export const heavy: Trial = {
  name: 'heavy',
  promise: `One caller or upstream makes others wait ${waitMaxMs} ms at most, and the memory of postern stays within ${memoryMaxMegabytes} MB`,
  times: { full: 1500, short: 20 },

  async run(times, seed) {
    const { broken, expect } = collector()
    const chance = random(seed)
    using place = workplace()
    const fixtures = fixturesIn(place, world)
    let answer = { text: '{}', type: 'application/json' }
    using upstream = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch: () => new Response(answer.text, { headers: { 'content-type': answer.type } }),
    })
    // Greets as it should, so that it is asked for what it has.
    using registered = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      async fetch(request) {
        const { id, method } = (await request.json().catch(() => ({}))) as { id?: number; method?: string }
        if (id === undefined) return new Response(null, { status: 202 })
        if (method !== 'initialize')
          return new Response(answer.text.replace('"id":1', `"id":${id}`), { headers: { 'content-type': answer.type } })
        const serverInfo = { name: 'registered', version: '1' }
        const capabilities = { tools: {}, resources: {}, prompts: {} }
        return Response.json({
          jsonrpc: '2.0',
          id,
          result: { protocolVersion: '2025-06-18', capabilities, serverInfo },
        })
      },
    })
    const flags = ['--fixtures', fixtures, '--allow-upstream', '127.0.0.1', ...withoutRates]
    await using server = await startServer(place, flags)
    const send = sendTo(server)
    const ask = async (method: string, path: string, body?: string, credential = key): Promise<number> => {
      const headers = { authorization: `Bearer ${credential}`, 'content-type': 'application/json' }
      const response = await send(path, { method, headers, ...(body !== undefined && { body }) })
      await response.arrayBuffer()
      return response.status
    }
    await ask('PUT', '/connect/mallory/real', JSON.stringify({ mcpUrl: `http://127.0.0.1:${upstream.port}/mcp` }))
    using prober = new Prober(server, '/health')

    const tokens = [key]
    const seen = new Map<number, number>()
    let worst = 0
    let memory = 0
    const sets = (text: string, type: string) => {
      answer = { text, type }
    }
    for (let round = 0; round < times; round += 1) {
      if (round % 20 === 0) tokens.push(await mintToken(send, key, { policy: policyOf(chance) }).catch(() => key))
      const [name, thing] = chance.pick(Object.entries(things))
      const [operation, run] = chance.pick(Object.entries(operations))
      const about = `round ${round}, ${operation} with ${name}`
      const chosen = chance.int(2 ** 31)
      const once = async (): Promise<number> => {
        await prober.longestMs()
        const mcpUrl = `http://127.0.0.1:${registered.port}/mcp`
        const statuses = await run({ ask, thing, chance: random(chosen), tokens, sets, mcpUrl })
        for (const status of statuses) seen.set(status, (seen.get(status) ?? 0) + 1)
        expect(!statuses.includes(500), () => `${about}: ${statuses}`)
        return prober.longestMs()
      }
      let waited = await once()
      // Memory is cleaned up now and then; what holds the process does so again.
      for (let again = 0; again < 3 && waited > waitMaxMs; again += 1) waited = Math.min(waited, await once())
      worst = Math.max(worst, waited)
      expect(waited <= waitMaxMs, () => `${about}: /health waited ${waited.toFixed(0)} ms, four times`)
      memory = Math.max(memory, anonymousMemory(server.pid))
      expect(memory <= memoryMaxMegabytes, () => `${about}: ${memory} MB of anonymous memory`)
    }
    const counts = [...seen].map(([status, count]) => `${status}: ${count}`).join(', ')
    const figure = `${times} rounds (${counts}), others waited ${worst.toFixed(0)} ms at most, and memory reached ${memory.toFixed(0)} MB`
    const answered = [...seen.values()].reduce((sum, count) => sum + count, 0)
    return { figure, broken, seen: { answers: [answered, times], 'status 200': [seen.get(200) ?? 0, 1] } }
  },
}

interface Round {
  ask(method: string, path: string, body?: string, credential?: string): Promise<number>
  readonly thing: (bytes: number) => string
  readonly chance: Random
  /** A key, and tokens that are costly to hold to. */
  readonly tokens: readonly string[]
  /** What the upstream answers next. */
  sets(text: string, type: string): void
  /** Of an upstream that greets as it should, and then answers the same. */
  readonly mcpUrl: string
}

/** Each gives the statuses it got. Several at once: what one request may cost, three may three times. */
const operations: Readonly<Record<string, (round: Round) => Promise<number[]>>> = {
  'POST /tokens': ({ ask, thing, chance }) =>
    several(() => {
      const frame = chance.pick([
        '…',
        '{"policy":…}',
        '{"policy":[{"namespaces":…}]}',
        '{"policy":[{"metadata":…}]}',
        '{"policy":[{"rpcReqMatch":…}]}',
      ])
      return ask('POST', '/tokens', filled(frame, thing, requestBodyBytesMax))
    }),
  'POST /tokens with patterns': ({ ask, chance, tokens }) =>
    several(() => ask('POST', '/tokens', JSON.stringify({ policy: policyOf(chance) }), chance.pick(tokens))),
  'PUT a connection': ({ ask, thing, chance }) =>
    several(() => {
      const frame = chance.pick([
        '…',
        '{"server":"mallory/tools","mock":{"enabled":true},"metadata":…}',
        '{"mcpUrl":…}',
        '{"mcpUrl":"http://127.0.0.1:1/","headers":…}',
      ])
      return ask('PUT', `/connect/mallory/p${chance.int(20)}`, filled(frame, thing, requestBodyBytesMax))
    }),
  'a call of a mock': ({ ask, thing, chance, tokens }) =>
    several(() =>
      ask('POST', '/connect/mallory/mocked/mcp', filled(call, thing, rpcBodyBytesMax), chance.pick(tokens)),
    ),
  'a call': ({ ask, thing, chance, tokens, sets }) => {
    sets('{"jsonrpc":"2.0","id":1,"result":{"content":[]}}', 'application/json')
    return several(() => {
      const frame = chance.pick([call, '…', '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":…}}'])
      return ask('POST', '/connect/mallory/real/mcp', filled(frame, thing, rpcBodyBytesMax), chance.pick(tokens))
    })
  },
  'a tool without MCP': ({ ask, thing }) =>
    several(() => ask('POST', '/connect/mallory/mocked/.tools/do', filled('{"x":…}', thing, rpcBodyBytesMax))),
  'an answer': ({ ask, thing, chance, tokens, sets }) => {
    const bytes = chance.pick([upstreamResponseBytesMax, parsedResponseCharsMax])
    const text = filled(chance.pick(answers), thing, bytes)
    const isStream = chance.chance(0.4)
    sets(isStream ? `data: ${text}\n\n` : text, isStream ? 'text/event-stream' : 'application/json')
    return several(() =>
      ask('POST', '/connect/mallory/real/mcp', chance.pick([list, call.replace('…', '1')]), chance.pick(tokens)),
    )
  },
  'a list of tools': ({ ask, chance, tokens, sets }) => {
    const nameChars = chance.pick([4, 60, 1000, 2000])
    const count = Math.floor(chance.pick([parsedResponseCharsMax, 400_000]) / (nameChars + 14))
    const tools = Array.from(
      { length: count },
      (_, i) => `{"name":"${i.toString(36)}${chance.pick(['ab', 'a', 'b ']).repeat(nameChars).slice(0, nameChars)}"}`,
    )
    const text = `{"jsonrpc":"2.0","id":1,"result":{"tools":[${tools}]}}`
    sets(text, 'application/json')
    return several(() => ask('POST', '/connect/mallory/real/mcp', list, chance.pick(tokens)))
  },
  'tools without MCP': ({ ask, thing, chance, sets }) => {
    sets(filled(chance.pick(answers), thing, parsedResponseCharsMax), 'application/json')
    return several(() => ask('GET', `/connect/mallory/real/.tools${chance.pick(['', '/x'])}`))
  },
  'texts for patterns': ({ ask, chance, tokens, sets }) => {
    sets('{}', 'application/json')
    const text = chance.pick(['ab', 'a', 'a b']).repeat(1024).slice(0, 1024)
    const args = Object.fromEntries(Array.from({ length: 400 }, (_, i) => [`p${i}`, text]))
    const body = JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: text, arguments: args },
    })
    return several(() => ask('POST', '/connect/mallory/real/mcp', body, chance.pick(tokens)))
  },
  'a list': ({ ask, chance }) =>
    several(() => {
      const filters = Array.from(
        { length: 40 },
        (_, i) => `metadata.${chance.pick(['a', '%41', 'x.'])}${i}=${'a'.repeat(100)}`,
      )
      return ask('GET', `/connect/mallory?${filters.slice(0, chance.int(40)).join('&')}`)
    }),
  'a server': ({ ask, thing, chance }) =>
    several(async () => {
      const frame = chance.pick([
        '…',
        '{"description":…}',
        '{"tools":[{"name":…,"inputSchema":{"type":"object"}}]}',
        '{"tools":[{"name":"do","inputSchema":{"type":"object","x":…}}]}',
        '{"resources":…}',
      ])
      // A description has fewer.
      const bytes = chance.pick([9000, serverBodyBytesMax])
      const status = await ask('PUT', `/servers/mallory/s${chance.int(20)}`, filled(frame, thing, bytes))
      // It is taken into the index with the next search.
      return status === 201 ? ask('GET', '/servers?q=aaa') : status
    }),
  'a server at a URL': ({ ask, thing, chance, sets, mcpUrl }) => {
    const frame = chance.pick([
      ...answers,
      '{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"do","inputSchema":{"type":"object","x":…}}]}}',
    ])
    const text = filled(frame, thing, introspectionBytesMax)
    const isStream = chance.chance(0.4)
    sets(isStream ? `data: ${text}\n\n` : text, isStream ? 'text/event-stream' : 'application/json')
    return several(() => ask('PUT', `/servers/mallory/u${chance.int(20)}`, JSON.stringify({ mcpUrl })))
  },
  'a search': ({ ask, chance }) =>
    several(() => {
      const words = chance.pick(['aaa', 'aaa1', 'aaaz', 'do', 'mallory do', 'a', 'e'.repeat(256)])
      return ask('GET', `/servers?q=${encodeURIComponent(words)}&pageSize=100`)
    }),
  'a path': ({ ask, chance }) =>
    several(() => ask('GET', `/connect/${chance.pick(['%2e', 'a/', '%c3%28', 'a'.repeat(50), '..%5c']).repeat(100)}`)),
}

function several(one: () => Promise<number>): Promise<number[]> {
  return Promise.all([one(), one(), one()])
}

/** As many costly patterns as a token may have, and a few more. */
function policyOf(chance: Random): object[] {
  return Array.from({ length: 1 + chance.int(3) }, () => {
    const paths = Array.from({ length: 1 + chance.int(30) }, () => `params.arguments.p${chance.int(400)}`)
    const rules = Object.fromEntries([...paths, 'params.name'].map((path) => [path, chance.pick(patterns)]))
    return { rpcReqMatch: chance.chance(0.5) ? { 'params.name': chance.pick(patterns) } : rules }
  })
}

const anything = {
  type: 'object',
  properties: { x: { uniqueItems: true, pattern: '^[ab]*a[ab]{50}$', items: { type: ['number', 'object', 'array'] } } },
}
const world = {
  namespaces: [{ namespace: 'mallory', userId: 'mallory' }],
  apiKeys: [
    { userId: 'mallory', key },
    { userId: 'operator', key: operator, operator: true },
  ],
  servers: [
    {
      qualifiedName: 'mallory/tools',
      displayName: 'Tools',
      description: 'Tools of this trial.',
      remote: true,
      connections: [],
      tools: [{ name: 'do', description: 'Does it.', inputSchema: anything }],
    },
  ],
  connections: [
    {
      namespace: 'mallory',
      connectionId: 'mocked',
      mcpUrl: 'https://tools.example.com/mcp',
      server: 'mallory/tools',
      mock: { enabled: true },
    },
  ],
}
