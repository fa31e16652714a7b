/**
 * One owner does its worst, with as many requests at once as twenty-four kinds of clients would send, of shapes of chance:
 * with several keys, tokens and sockets. Meanwhile others list and revoke as before, memory stays within a bound, and
 * the record of calls tells what was executed.
 */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { serverBodyBytesMax } from '../../src/limits.ts'
import { mintToken } from '../api/cases.ts'
import { anonymousMemory } from '../bench/measure.ts'
import { hostileSchema } from '../features/mocks/hostile-schema.ts'
import { type Server, sendTo, startServer, withoutRates, workplace } from '../support/executable.ts'
import { oneHash } from '../support/one-hash.ts'
import { type Random, random } from '../support/random.ts'
import { fixturesIn } from '../support/workplace.ts'
import { Prober } from './prober.ts'
import { collector, type Trial } from './trial.ts'

/** Without the time in which the process had no core. */
const waitMaxMs = 100
const memoryMaxMegabytes = 400
const atOnce = 40
const rows = 4000
/** Of each row, besides its kind: the first has two values, each later one one more. */
const facts = 12

const [mallory, alice, operator] = ['mallory', 'alice', 'operator'].map(
  (name) => `a-key-of-${name}-for-this-trial-0001`,
)

export const oneOwner: Trial = {
  name: 'one-owner',
  promise: `Beside one owner's worst, ${atOnce} at once, others wait no more than ${waitMaxMs} ms, revocations come first, and memory stays within ${memoryMaxMegabytes} MB`,
  times: { full: 240, short: 24 },

  async run(times, seed) {
    const { broken, expect } = collector()
    const chance = random(seed)
    using place = workplace()
    const fixtures = fixturesIn(place, world)
    let executed = 0
    using upstream = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      async fetch(request) {
        const { method, id, params } = (await request.json()) as {
          method: string
          id: number
          params: { name?: string; cursor?: string }
        }
        const events = { 'content-type': 'text/event-stream' }
        const { cursor = '' } = params
        const times = cursor.length < 20 ? 5000 : Math.ceil(2 ** 17 / cursor.length)
        if (method === 'tools/list') return new Response(cursor.repeat(times), { headers: events })
        if (method !== 'tools/call') return Response.json({ jsonrpc: '2.0', id, result: {} })
        if (params.name === 'silent') return new Response(silent(), { headers: events })
        if (params.name === 'endless') return new Response(endless(), { headers: events })
        const dear = dearAnswers[params.name ?? '']?.(id)
        if (dear !== undefined) return dear
        executed += 1
        const text = 'x'.repeat((params as { arguments: { size: number } }).arguments.size)
        return Response.json({ jsonrpc: '2.0', id, result: { content: [{ type: 'text', text }] } })
      },
    })
    const more = ['--trusted-proxy', '127.0.0.1']
    const flags = ['--fixtures', fixtures, '--allow-upstream', '127.0.0.1', ...more, ...withoutRates]
    await using server = await startServer(place, flags)
    const send = sendTo(server)
    const ask = async (method: string, path: string, body?: object | string, key = mallory) => {
      const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
      const text = typeof body === 'object' ? JSON.stringify(body) : body
      const response = await send(path, { method, headers, ...(text !== undefined && { body: text }) })
      return { status: response.status, text: await response.text() }
    }
    await ask('PUT', '/connect/mallory/real', { mcpUrl: `http://127.0.0.1:${upstream.port}/mcp` })
    const framing = framingWithoutEnd()
    await ask('PUT', '/connect/mallory/framing', { mcpUrl: `http://127.0.0.1:${framing.port}/mcp` })
    for (const [name, owner] of [
      ['acme', 'alice'],
      ['evil', 'mallory'],
    ])
      await ask('PUT', `/organizations/${name}`, { owner }, operator)
    const organizationKeys: string[] = []
    for (let i = 0; i < 5; i += 1)
      organizationKeys.push(JSON.parse((await ask('POST', '/organizations/evil/api-keys', { name: 'ci' })).text).key)
    for (let i = 0; i < 8; i += 1) await ask('PUT', `/servers/mallory/big${i}`, largeServer(chance))
    // An endpoint of twelve thousand tools, one in a hundred of them large.
    await ask('PUT', '/namespaces/wide')
    await ask('PUT', '/servers/mallory/many', serverOfMany(chance))
    for (let i = 0; i < 6; i += 1)
      await ask('PUT', `/connect/wide/m${i}`, { server: 'mallory/many', mock: { enabled: true } })
    await fillLargeNamespace(ask)

    using health = new Prober(server, '/health')
    using lists = new Prober(server, '/connect/alice?metadata.kind=b', alice)
    const longestMs = async () => Math.max(await health.longestMs(), await lists.longestMs())
    const before = anonymousMemory(server.pid)
    const seen = new Map<string, Map<number, number>>()
    let [worst, memory, late] = [0, 0, 0]
    for (let round = 0; round < times; round += 1) {
      const kinds = Object.entries(worsts)
      const [name, attack] = kinds[round % kinds.length] as (typeof kinds)[number]
      const chosen = chance.int(2 ** 31)
      const once = async (): Promise<number> => {
        const keys = [mallory as string]
        for (let i = 0; i < 3; i += 1) keys.push(await mintToken(send, mallory as string))
        await longestMs()
        const answered: number[] = []
        const begun = attack({ server, ask, keys, organizationKeys, chance: random(chosen) }).map(async (one) => {
          const status = await one
          answered.push(status)
          const counts = seen.get(name) ?? new Map<number, number>()
          seen.set(name, counts.set(status, (counts.get(status) ?? 0) + 1))
        })
        // Others change who has access, when all of it is under way.
        await Bun.sleep(0)
        const removed = await ask('PUT', '/organizations/acme/members/bob', { role: 'member' }, alice)
        const revoked = await ask('DELETE', '/organizations/acme/members/bob', undefined, alice)
        if (name === 'writes of the directory')
          late = Math.max(late, answered.filter((status) => status === 201).length)
        expect(removed.status === 200 && revoked.status === 200, () => `${name}: ${removed.text} ${revoked.text}`)
        await Promise.all(begun)
        expect(!answered.includes(500), () => `round ${round}, ${name}: ${answered}`)
        memory = Math.max(memory, anonymousMemory(server.pid))
        return longestMs()
      }
      let waited = await once()
      // Memory is cleaned up now and then; what holds the process does so again.
      for (let again = 0; again < 3 && waited > waitMaxMs; again += 1) waited = Math.min(waited, await once())
      worst = Math.max(worst, waited)
      expect(waited <= waitMaxMs, () => `round ${round}, ${name}: others waited ${waited.toFixed(0)} ms, four times`)
      expect(memory - before <= memoryMaxMegabytes, () => `round ${round}, ${name}: ${memory} MB, ${before} before`)
    }
    framing.stop(true)
    expect(late < atOnce / 2, () => `a revocation waited for ${late} writes of another`)
    const recorded = readFileSync(join(place.data, 'calls.jsonl'), 'utf8')
      .split('\n')
      .filter((line) => line.includes('"tool":"sized"') && !line.includes('"outcome":"refused"')).length
    expect(recorded >= executed, () => `${executed} calls were executed, and ${recorded} lines say so`)
    const counts = [...seen].map(
      ([name, statuses]) => `${name} ${[...statuses].map(([status, count]) => `${status}: ${count}`).join(' ')}`,
    )
    const figure = `${times} rounds (${counts.join(', ')}), ${worst.toFixed(0)} ms at the most, ${(memory - before).toFixed(0)} MB more, ${executed} calls executed`
    const taken = (name: string) =>
      [...(seen.get(name) ?? [])].reduce((sum, [status, count]) => sum + (status === 429 ? 0 : count), 0)
    const kinds = Object.keys(worsts).slice(0, times)
    return { figure, broken, seen: Object.fromEntries(kinds.map((name) => [name, [taken(name), 1]] as const)) }
  },
}

interface Attack {
  readonly server: Server
  ask(method: string, path: string, body?: object | string, key?: string): Promise<{ status: number; text: string }>
  /** A key and tokens of the same owner. */
  readonly keys: readonly string[]
  readonly organizationKeys: readonly string[]
  readonly chance: Random
}

type Worst = (attack: Attack) => Promise<number>[]

const times = <T>(count: number, make: (index: number) => T) => Array.from({ length: count }, (_, index) => make(index))

/** Each begins as much as one owner can at once, and gives the statuses to come. */
const worsts: Readonly<Record<string, Worst>> = {
  // First: the runtime has compiled nothing yet.
  'bodies of many values': ({ ask, keys, chance }) =>
    times(atOnce, async () => {
      const a = chance.chance(0.5)
        ? times(chance.pick([100_000, 140_000]), () => 'x')
        : [...times(19_900, (i) => ({ k: `${i}` })), ...times(50_000, (i) => [`${i}`])]
      const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'sized', arguments: { size: 1, a } } }
      return (await ask('POST', '/connect/mallory/real/mcp', call, chance.pick(keys))).status
    }),
  'schemas of mocks': ({ ask, keys, chance }) => {
    const name = `mallory/schema${chance.int(5)}`
    const made = ask('PUT', `/servers/${name}`, {
      tools: times(20, (i) => ({
        name: `t${i}`,
        inputSchema: i === 2 ? longTexts : schema(chance, i === 0 ? [700, 3000] : [20, 50, 140]),
        ...(i % 10 === 1 && { outputSchema: hostileSchema(chance) }),
      })),
    })
    const mocked = made.then(() => ask('PUT', '/connect/mallory/schemas', { server: name, mock: { enabled: true } }))
    return times(atOnce, async (i) => {
      await mocked
      const call = {
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: { name: `t${i % 20}`, arguments: value(chance) },
      }
      return (await ask('POST', '/connect/mallory/schemas/mcp', call, chance.pick(keys))).status
    })
  },
  'pages of the directory': ({ ask, keys, chance }) =>
    times(atOnce, async () => {
      const path = chance.pick([
        '/v0.1/servers?limit=100',
        '/servers?pageSize=100',
        '/servers?q=word',
        '/servers/mallory/big1',
      ])
      return (await ask('GET', path, undefined, chance.pick(keys))).status
    }),
  'writes of the directory': ({ ask, keys, chance }) =>
    times(atOnce, async () => {
      const isWhole = chance.chance(0.5)
      const path = `/servers/mallory/big${chance.int(8)}`
      const body = isWhole ? largeServer(chance) : { description: `changed ${chance.int(1e6)}` }
      return (await ask(isWhole ? 'PUT' : 'PATCH', path, body, chance.pick(keys))).status
    }),
  'bodies that do not end': ({ server, keys, chance }) =>
    times(atOnce * 5, () => {
      const size = chance.pick([serverBodyBytesMax, 500_000, 60_000])
      const path = chance.pick(['/connect/mallory/real/mcp', '/servers/mallory/big1', '/tokens'])
      const head = `POST ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${chance.pick(keys)}\r\nContent-Type: application/json\r\nContent-Length: ${size}\r\n\r\n`
      return held(server, head + ' '.repeat(size - 1), 1)
    }),
  'answers that nobody reads': ({ server, keys, chance }) =>
    times(atOnce * 5, () => {
      const path = chance.pick([
        `/connect/mallory?limit=${1 + chance.int(100)}`,
        '/servers/mallory/big1',
        '/v0.1/servers?limit=100',
      ])
      return held(
        server,
        `GET ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${chance.pick(keys)}\r\n\r\n`,
        1,
      )
    }),
  // Beside writes, so that no page is kept.
  'lists that are filtered': ({ ask, keys, chance }) => {
    const metadata = times(110, (i) =>
      Object.fromEntries([i, i + 1, i + 2].map((fact) => [`k${fact % facts}`, `v${chance.int(2 + (fact % facts))}`])),
    )
    const wide = ask('POST', '/tokens', { policy: [{ metadata }] }).then(({ text }) => JSON.parse(text).token)
    return times(atOnce, async (i) => {
      if (i % 8 === 0) {
        const { connectionId, mcpUrl, metadata } = rowOf(chance.int(rows))
        const write = { mcpUrl, metadata, name: `changed ${chance.int(1e6)}` }
        return (await ask('PUT', `/connect/mallory/${connectionId}`, write)).status
      }
      const filters = chance.pick([
        'metadata.a=x&metadata.b=y',
        'metadata.a=x&metadata.kind=none',
        'metadata.b=y&limit=1',
        `metadata.k1=v1&limit=${chance.int(100) + 1}`,
      ])
      const key = chance.chance(0.5) ? await wide : chance.pick(keys)
      return (await ask('GET', `/connect/mallory?${filters}`, undefined, key)).status
    })
  },
  'calls with large answers': ({ ask, keys, chance }) =>
    times(atOnce, async () => {
      const params = { name: 'sized', arguments: { size: chance.pick([10, 300_000, 3_000_000]) } }
      return (
        await ask(
          'POST',
          '/connect/mallory/real/mcp',
          { jsonrpc: '2.0', id: 1, method: 'tools/call', params },
          chance.pick(keys),
        )
      ).status
    }),
  'streams of lines and lists': ({ ask, keys, chance }) => {
    const policy = [{ rpcReqMatch: { 'params.name': '^a' } }]
    const narrowed = keys.map(async (key) => JSON.parse((await ask('POST', '/tokens', { policy }, key)).text).token)
    return times(atOnce, async () => {
      const line = chance.pick(['', 'a', ':', 'data', 'id:1']) + chance.pick(['\n', '\r', '\r\n'])
      const tools = times(chance.pick([1, 60]), (i) => ({ name: `a${i}`, inputSchema: { type: 'object' } }))
      const event = `data: ${JSON.stringify({ jsonrpc: '2.0', id: 1, result: { tools } })}\n\n`
      // Lists are the dearer ones.
      const cursor = chance.pick([line, event, event, event])
      const list = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: { cursor } }
      return (await ask('POST', '/connect/mallory/real/mcp', list, await chance.pick(narrowed))).status
    })
  },
  'chunks with extensions': ({ ask, keys, chance }) =>
    times(atOnce * 5, async () => {
      const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'framed' } }
      return (await ask('POST', '/connect/mallory/framing/mcp', call, chance.pick(keys))).status
    }),
  'many keys of an organization': ({ ask, organizationKeys, chance }) =>
    times(atOnce, async () => {
      const path = `/servers?q=${chance.pick(['word', 'a', 'tools'])}&topK=500`
      return (await ask('GET', path, undefined, chance.pick(organizationKeys))).status
    }),
  'one endpoint of very many tools': ({ ask, keys, chance }) =>
    times(atOnce, async () => {
      const call = (name: string, args: object) => ({ method: 'tools/call', params: { name, arguments: args } })
      const [query, message] = chance.pick([
        [chance.pick(['', '?names=64', '?status=tool']), { method: 'tools/list' }],
        ['?tools=search', { method: 'tools/list' }],
        ['?tools=search', call('search_tools', { query: 't1 word', detail: chance.pick(['signature', 'full']) })],
        ['', call('m0__t1_deadbeef', {})],
      ] as const)
      const body = { jsonrpc: '2.0', id: 1, ...message }
      if (chance.chance(0.1)) return (await ask('GET', '/connect/wide/.tools', undefined, chance.pick(keys))).status
      return (await ask('POST', `/connect/wide/mcp${query}`, body, chance.pick(keys))).status
    }),
  'streams of events': ({ server, ask, keys, chance }) => {
    const policy = [{ metadata: [{ kind: 'a' }, { kind: 'b' }] }]
    const stop = new AbortController()
    const listening = keys.slice(0, 1).flatMap((key) =>
      times(48, async () => {
        const { token } = JSON.parse((await ask('POST', '/tokens', { policy }, key)).text)
        const headers = { authorization: `Bearer ${token}` }
        return fetch(`${server.url}/events?types=call,connection`, { headers, signal: stop.signal })
      }),
    )
    const call = { jsonrpc: '2.0', id: 1, method: 'tools/list' }
    const calls = Promise.all(listening).then(() =>
      Promise.all(
        times(atOnce * 5, () => ask('POST', `/connect/wide/m${chance.int(3)}/mcp`, call, chance.pick(keys))),
      ).finally(() => stop.abort()),
    )
    return [...listening.map(async (one) => (await one).status), calls.then(([one]) => one?.status ?? 0)]
  },
  'forms without a credential': ({ server, chance }) =>
    times(atOnce * 5, () => {
      const path = chance.pick(['/signin', '/oauth/token', '/oauth/revoke'])
      const head = `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 65000\r\n\r\n`
      return held(server, head + 'a'.repeat(64_999), 1)
    }),
  // Paths that answer before they read a body.
  'chunks that nobody reads': ({ server, keys, chance }) =>
    times(atOnce * 5, () => {
      const [path, key] = chance.pick([
        ['/connect/mallory/real/mcp', 'nobody'],
        ['/connect/mallory/none/mcp', chance.pick(keys)],
        ['/me', chance.pick(keys)],
      ] as const)
      const head = `POST ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${key}\r\nTransfer-Encoding: chunked\r\n\r\n`
      return held(server, head + '1\r\n \r\n'.repeat(50_000), 5)
    }),
  'forms of many addresses of a network': ({ server, chance }) =>
    times(atOnce * 8, async (i) => {
      const path = chance.pick(['/signin', '/oauth/token', '/oauth/revoke', '/signin/cli'])
      const body = chance.pick([
        '%FF'.repeat(21_000),
        'a&'.repeat(500),
        'a=b&'.repeat(999),
        `token=${'.'.repeat(8000)}`,
      ])
      const headers = {
        'content-type': 'application/x-www-form-urlencoded',
        'x-forwarded-for': `192.0.2.${i % atOnce}`,
      }
      return (await fetch(`${server.url}${path}`, { method: 'POST', headers, body, redirect: 'manual' })).status
    }),
  'queries and cookies of many parts': ({ server, chance }) => {
    const query = chance.pick(['a&', 'a=b&', '%41=%42&']).repeat(7000).slice(0, 14_000)
    const requests = [
      `/oauth/callback?${query}`,
      `/nowhere?${query}`,
      `/signin HTTP/1.1\r\nCookie: ${'a;'.repeat(7000)}`,
    ]
    const [target = '', cookies = 'Accept: */*'] = chance
      .pick([...requests, ...requests.slice(0, 1)])
      .split(' HTTP/1.1\r\n')
    return times(atOnce * 5, () => held(server, `GET ${target} HTTP/1.1\r\nHost: localhost\r\n${cookies}\r\n\r\n`, 1))
  },
  'forms of setup pages': ({ ask }) => {
    // Forms that are short enough, and some that a page must not show.
    const shapes = [
      [16, 900],
      [45_000, 10],
    ] as const
    const made = shapes.map(async ([options, characters]) => {
      const choices = times(options, (i) => `${'<'.repeat(characters)}${i}`)
      const configSchema = { type: 'object', required: ['p'], properties: { p: { enum: choices } } }
      const option = { type: 'http', deploymentUrl: 'https://tools.example.com/mcp', configSchema }
      const name = `form${options}`
      await ask('PUT', `/servers/mallory/${name}`, { connections: [option] })
      await ask('DELETE', `/connect/mallory/${name}`)
      return ask('PUT', `/connect/mallory/${name}`, { server: `mallory/${name}` })
    })
    return times(atOnce, async (i) => {
      const { status, text } = await (made[i % made.length] as (typeof made)[number])
      if (status >= 400) return status
      const { pathname, search } = new URL(JSON.parse(text).status.setupUrl)
      return (await ask('GET', `${pathname}${search}`)).status
    })
  },
  'names with one hash': ({ ask, keys, chance }) =>
    times(atOnce, async (i) => {
      // As text: here too an object of such names would be slow to make.
      const args = `{${oneHash
        .slice(0, chance.pick([5000, 12_000]))
        .map((name) => `${JSON.stringify(name)}:1`)
        .join()}}`
      const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"sized","arguments":${args}}}`
      const isStranger = i % 4 === 0
      const [path, body] = isStranger ? ['/oauth/register', args] : ['/connect/mallory/real/mcp', call]
      return (await ask('POST', path, body, chance.pick(keys))).status
    }),
  'tokens that nobody signed': ({ server, chance, keys }) =>
    times(atOnce, async (i) => {
      const [header] = chance.pick(keys).split('.')
      const isForm = i % 2 === 0
      const names = oneHash.slice(0, isForm ? 4000 : chance.pick([500, 1000]))
      const claims = Buffer.from(JSON.stringify(Object.fromEntries(names.map((name) => [name, 1])))).toString(
        'base64url',
      )
      const token = `${header}.${claims}.${'b'.repeat(86)}`
      const form = { method: 'POST', body: new URLSearchParams({ token }) }
      const asked = isForm
        ? fetch(`${server.url}/oauth/revoke`, form)
        : fetch(`${server.url}/connect/mallory`, { headers: { authorization: `Bearer ${token}` } })
      return (await asked).status
    }),
  'requests sent ahead': ({ server, chance }) =>
    times(atOnce, () => {
      const path = chance.pick(['/health', '/nothing', '/docs/api', '/openapi.json'])
      return held(server, `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`.repeat(5000), 1)
    }),
  // Most clients go away: whoever reads everything waits for its owner's time.
  'large records': ({ server, ask, keys, chance }) => {
    const greeting = { jsonrpc: '2.0', id: 1, method: 'initialize', params: { protocolVersion: '2025-11-25' } }
    const read = times(atOnce / 4, async (i) => {
      const path = largeReads[i]
      const key = chance.pick(keys)
      return (
        await (path === undefined ? ask('POST', '/connect/large/mcp', greeting, key) : ask('GET', path, undefined, key))
      ).status
    })
    const left = times(atOnce * 4, () => {
      const known = chance.chance(0.5) ? 'If-None-Match: *\r\n' : ''
      const head = `Host: localhost\r\nAuthorization: Bearer ${chance.pick(keys)}\r\n${known}`
      return held(server, `GET ${chance.pick(largeReads)} HTTP/1.1\r\n${head}\r\n`, chance.pick([1, 5, 20]))
    })
    return [...read, ...left]
  },
  'answers that are dear to record': ({ ask, keys, chance }) =>
    times(atOnce, async () => {
      const params = { name: chance.pick(Object.keys(dearAnswers)), arguments: {} }
      const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params }
      return (await ask('POST', '/connect/mallory/real/mcp', call, chance.pick(keys))).status
    }),
  'streams that nobody reads': ({ server, keys, chance }) =>
    times(atOnce * 8, () => held(server, callOf('endless', chance.pick(keys)), 40)),
  'streams whose client goes': ({ server, keys, chance }) => {
    const { port } = new URL(server.url)
    const count = atOnce * 20
    const program = join(import.meta.dir, 'leaving-process.ts')
    const child = Bun.spawn([process.execPath, program, port, String(count), callOf('silent', chance.pick(keys))], {
      stdout: 'pipe',
    })
    const leave = async () => {
      const { value } = await child.stdout.pipeThrough(new TextDecoderStream()).getReader().read()
      child.kill('SIGKILL')
      await child.exited
      // Until the server has seen it.
      for (let turn = 0; turn < 40; turn += 1) await turnOf(server)
      return Number(value) > count / 2 ? 200 : 429
    }
    return [leave()]
  },
}

/** A request to call a tool of mallory's, whose answer is a stream. */
function callOf(tool: string, key: string): string {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: tool, arguments: {} } })
  return `POST /connect/mallory/real/mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${key}\r\nAccept: application/json, text/event-stream\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
}

const largeReads = [
  '/connect/large',
  '/connect/large/.health',
  '/namespaces/large/views',
  '/registry/large/v0.1/servers?search=nothing',
]

/** A namespace whose records and views are as large as they may be. */
async function fillLargeNamespace(ask: Attack['ask']): Promise<void> {
  await ask('PUT', '/namespaces/large')
  await ask('PATCH', '/namespaces/large', { registry: 'public' })
  const metadata = { text: 'x'.repeat(60_000) }
  const always = times(5, () => '\u0001'.repeat(200))
  const view = { policy: [], title: '\u0001'.repeat(100), instructions: '\u0001'.repeat(1000), always }
  await Promise.all([
    ...times(97, (i) => ask('PUT', `/connect/large/c${i}`, { mcpUrl: 'https://tools.example.com/mcp', metadata })),
    ...times(100, (i) => ask('PUT', `/namespaces/large/views/v${i}`, view)),
  ])
}

const manyObjects = `[${times(40_000, () => '{}').join()}]`

/** Answers that say how a call ended only to somebody who reads all of them. */
const dearAnswers: Readonly<Record<string, (id: number) => Response>> = {
  failing: (id) =>
    new Response(`{"jsonrpc":"2.0","id":${id},"error":{"code":1,"message":"no","data":${manyObjects}}}`, {
      headers: { 'content-type': 'application/json' },
    }),
  ofOthers: () => ofEvents(times(20, () => `data: {"jsonrpc":"2.0","id":"x","result":{"a":${manyObjects}}}\n\n`)),
  bytewise: () => ofEvents([...`data: ${'x'.repeat(5000)}`]),
}

function ofEvents(pieces: readonly string[]): Response {
  async function* inTurn() {
    for (const piece of pieces) {
      yield Buffer.from(piece)
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
  return new Response(inTurn() as never, { headers: { 'content-type': 'text/event-stream' } })
}

/** Events of a megabyte, one after the other. */
function endless(): ReadableStream<Uint8Array> {
  const event = Buffer.from(`data: "${'x'.repeat(2 ** 20)}"\n\n`)
  return new ReadableStream({ pull: (controller) => controller.enqueue(event) })
}

/** A stream that is open, and says no more. */
function silent(): ReadableStream<Uint8Array> {
  return new ReadableStream({ start: (controller) => controller.enqueue(Buffer.from(':\n\n')) })
}

/** A server whose stream of a call has chunks of one byte, each with a long extension, for as long as somebody reads them. */
function framingWithoutEnd() {
  const head = 'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n'
  const chunks = Buffer.from(`1;${'x'.repeat(1000)}\r\n:\r\n`.repeat(64))
  const pour = (socket: Bun.Socket) => {
    while (socket.write(chunks) === chunks.length);
  }
  return Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      data(socket, bytes) {
        if (!bytes.includes('"framed"')) return void socket.write('HTTP/1.1 405 \r\nContent-Length: 0\r\n\r\n')
        socket.write(head)
        pour(socket)
      },
      drain: pour,
      error() {},
    },
  })
}

let nextTurn: Promise<void> | undefined

/** Resolves when the server has answered somebody: one request for all that wait, which would be a load of their own. */
function turnOf(server: Server): Promise<void> {
  nextTurn ??= fetch(`${server.url}/health`).then(() => {
    nextTurn = undefined
  })
  return nextTurn
}

/** Sends bytes on a socket that reads nothing for `turns` of the server, then goes with all that wait, and gives 0. */
async function held(server: Server, text: string, turns: number): Promise<number> {
  const socket = await Bun.connect({
    hostname: '127.0.0.1',
    port: Number(new URL(server.url).port),
    socket: { open: (opened) => opened.pause(), data() {}, drain() {} },
  })
  socket.write(text)
  // Until the server has seen it: it answers others in between.
  for (let turn = 0; turn <= turns; turn += 1) await turnOf(server)
  socket.terminate()
  return 0
}

function largeServer(chance: Random): object {
  // Made once: thousands of words of chance are slow to make.
  largeText ||= times(90_000, () => `word${chance.int(1e6).toString(36)}`).join(' ')
  const from = chance.int(largeText.length - 900_000)
  const description = largeText.slice(from, from + 900_000)
  return { description: 'large', tools: [{ name: 't', description, inputSchema: { type: 'object' } }] }
}

function serverOfMany(chance: Random): object {
  const tools = times(2000, (i) => ({
    name: `t${i.toString(36)}`,
    description: i % 100 === 0 ? largeText.slice(0, 1000 + chance.int(20_000)) : 'word',
    inputSchema: { type: 'object' },
  }))
  return { description: 'many', tools }
}

let largeText = ''

/** A schema within so many others, each of which may have more. */
function within(levels: number, keyword: string, inner: object, more: (level: number) => object = () => ({})): object {
  return levels === 0 ? inner : { ...more(levels), [keyword]: within(levels - 1, keyword, inner, more) }
}

/** A schema of one thing over and over: as large as it may be, smaller, or larger. */
/** A text that is looked at 4,300 times: not Latin-1, so each of its characters takes longer. */
const longTexts = {
  type: 'object',
  $defs: {
    a: { not: { enum: ['\u0101'.repeat(36_000)] } },
    b: { allOf: times(12, () => ({ $ref: '#/$defs/a' })) },
    c: { allOf: times(12, () => ({ $ref: '#/$defs/b' })) },
  },
  allOf: times(30, () => ({ $ref: '#/$defs/c' })),
}

function schema(chance: Random, counts: readonly number[]): object {
  const count = chance.pick(counts)
  const named = (make: (i: number) => unknown) =>
    Object.fromEntries(times(count, (i) => [`p${chance.int(9)}${i}`, make(i)]))
  return chance.pick([
    () => ({
      type: 'object',
      properties: named(() => ({ type: 'array', uniqueItems: true, items: { format: 'uri' } })),
    }),
    () => ({
      type: 'object',
      patternProperties: Object.fromEntries(times(count, (i) => [`^p${i}[a-z]{1,200}$`, true])),
    }),
    () => ({ type: 'object', anyOf: times(count, (i) => ({ properties: { a: { const: i } }, required: ['a'] })) }),
    () => ({ type: 'object', dependentRequired: named(() => ['a', 'b']) }),
    () => ({ type: 'object', dependentRequired: { a: times(4 * count, (i) => `p${i}`) } }),
    () => {
      const keyword = chance.pick(['additionalProperties', 'items', 'not', 'contains', 'propertyNames'])
      const levels = chance.pick([4, 12, 20])
      return {
        type: 'object',
        required: ['p'],
        allOf: times(Math.ceil(count / levels), (i) => within(levels, keyword, { const: i })),
      }
    },
    () => ({
      type: 'object',
      ...within(chance.pick([10, 22]), 'not', {}, (level) => ({ $dynamicAnchor: `a${level}` })),
    }),
    () => ({
      type: 'object',
      ...within(8, 'not', { properties: named(() => ({ type: 'string' })) }),
      allOf: times(8, (i) => ({ $ref: `#${'/not'.repeat(i + 1)}` })),
    }),
    () => ({
      type: 'object',
      properties: { a: { anyOf: [{ $ref: '#' }, { $ref: '#' }] } },
      additionalProperties: false,
    }),
    () => ({
      type: 'object',
      $defs: named(() => ({ type: 'string' })),
      properties: named((i) => ({ $ref: `#/$defs/p${i}` })),
    }),
    () => ({
      type: 'object',
      additionalProperties: { allOf: times(count, () => ({ $ref: '#/$defs/a' })) },
      propertyNames: { $ref: '#/$defs/a' },
      $defs: {
        a: { allOf: times(count, () => ({ $ref: '#/$defs/b' })) },
        b: { allOf: times(count, () => ({ minLength: chance.pick([0, 50]) })) },
      },
    }),
    () => {
      const properties = named(() => ({ type: 'string', format: `of ${'\n'.repeat(chance.int(40))}` }))
      return { type: 'object', properties: { ['n'.repeat(chance.pick([40, 900, 100_000]))]: { properties } } }
    },
    () => ({
      type: 'object',
      unevaluatedProperties: false,
      allOf: times(count, (i) => ({ properties: { [`p${i}`]: true } })),
    }),
  ])()
}

function value(chance: Random): unknown {
  let nested: unknown = { b: 1 }
  for (let i = 0; i < 28; i += 1) nested = { a: nested }
  return chance.pick([
    {},
    nested,
    Object.fromEntries(times(5000, (i) => [`p${i}`, 'x'])),
    { p11: times(50_000, () => 1) },
    { ['n'.repeat(chance.pick([2000, 900_000]))]: 'x' },
  ])
}

/** A connection of mallory's, by its number. */
function rowOf(i: number) {
  const ofFacts = Object.fromEntries(times(facts, (fact) => [`k${fact}`, `v${(i * 7 + fact * 13) % (fact + 2)}`]))
  return {
    namespace: 'mallory',
    connectionId: `c${i}`,
    mcpUrl: 'https://tools.example.com/mcp',
    // No row has both.
    metadata: { ...ofFacts, text: 'v'.repeat(900), ...(i % 2 === 0 ? { a: 'x' } : { b: 'y' }) },
  }
}

const world = {
  namespaces: [
    { namespace: 'mallory', userId: 'mallory' },
    { namespace: 'alice', userId: 'alice' },
  ],
  apiKeys: [
    { userId: 'mallory', key: mallory },
    { userId: 'alice', key: alice },
    { userId: 'operator', key: operator, operator: true },
  ],
  connections: [
    ...times(rows, rowOf),
    ...times(20, (i) => ({
      namespace: 'alice',
      connectionId: `c${i}`,
      mcpUrl: 'https://tools.example.com/mcp',
      metadata: { kind: i % 2 === 0 ? 'a' : 'b' },
    })),
  ],
}
