/** What a server has, as it is asked: the lists that it returns, and the problems of those that it does not. */

import { expect, test } from 'bun:test'
import { jsonDepthMax } from '../../src/limits.ts'
import { serverDescriptionCharsMax, serverNameCharsMax } from '../../src/model/server.ts'
import { introspectServer } from '../../src/upstream/introspect.ts'
import { serverErrorCharsMax } from '../../src/upstream/probe.ts'
import type { UpstreamResponse } from '../../src/upstream/upstream.ts'

const json = { 'content-type': 'application/json' }
const holder = { keyId: 'key', family: 'key' }
const tool = (name: unknown, inputSchema = '{"type":"object"}') =>
  `{"name":${JSON.stringify(name)},"inputSchema":${inputSchema}}`
const nested = (depth: number) => `{"type":"object","a":${'['.repeat(depth)}${']'.repeat(depth)}}`

/**
 * The introspection of a server that answers `tools/list` so, and has two resources. A text is its tools, and several
 * are pages of them.
 */
async function introspected(
  list: string | readonly string[] | { status: number } | { error: object },
  serverInfo: object = {},
) {
  const sent: string[] = []
  let steps = 0
  const found = await introspectServer(
    {
      async send({ body, method }): Promise<UpstreamResponse> {
        const none = { status: 405, headers: {}, body: undefined }
        if (method !== 'POST') return none
        const message = JSON.parse(String(body))
        sent.push(message.method)
        const answer = (text: string) => ({ status: 200, headers: json, body: new Uint8Array(Buffer.from(text)) })
        const reply = (part: string) => answer(`{"jsonrpc":"2.0","id":${message.id},${part}}`)
        if (message.id === undefined) return { status: 202, headers: {}, body: undefined }
        if (message.method === 'initialize') {
          const result = {
            protocolVersion: '2025-06-18',
            capabilities: { tools: {}, resources: {} },
            serverInfo: { name: 's', version: '1', ...serverInfo },
          }
          return reply(`"result":${JSON.stringify(result)}`)
        }
        if (message.method === 'resources/list') return reply(`"result":{"resources":${JSON.stringify(resources)}}`)
        if (typeof list === 'string') return reply(`"result":{"tools":[${list}]}`)
        if ('length' in list) {
          const page = Number(message.params?.cursor ?? 0)
          const next = page + 1 < list.length ? `,"nextCursor":"${page + 1}"` : ''
          return reply(`"result":{"tools":[${list[page]}]${next}}`)
        }
        return 'status' in list ? { ...none, ...list } : reply(`"error":${JSON.stringify(list.error)}`)
      },
    },
    'https://a.example.com/mcp',
    { holder, via: undefined },
    {
      async run(work) {
        for (;;) {
          const { done, value } = work.next()
          if (done === true) return value
          steps += 1
        }
      },
    },
  )
  return { found, sent, steps }
}
const resources = [{ name: 'one', uri: 'file:///one' }]
const problemOf = async (list: Parameters<typeof introspected>[0]) => (await introspected(list)).found.problems.join()

test('the pages of a server have so many values together', async () => {
  const page = (name: string) => tool(name, `{"type":"object","a":[${'[],'.repeat(10_000)}[]]}`)
  const { found } = await introspected([page('a'), page('b')])
  expect(found.introspected.tools).toHaveLength(2)
  expect(await problemOf([page('a'), page('b'), page('c')])).toBe(
    'The server’s answer has more than 50000 values in all',
  )
})

test('the definitions of a server are kept as a write would have them', async () => {
  const deepest = nested(jsonDepthMax - 4)
  expect((await introspected(tool('a', deepest))).found).toEqual({
    introspected: {
      tools: [{ name: 'a', description: null, inputSchema: JSON.parse(deepest) }],
      resources,
      prompts: null,
    },
    about: {},
    problems: [],
  })
})

test('the title and the description of a server are kept as far as a write would take them', async () => {
  const about = async (serverInfo: object) => (await introspected(tool('a'), serverInfo)).found.about
  expect(await about({ title: 'A Server', description: 'It serves.' })).toEqual({
    displayName: 'A Server',
    description: 'It serves.',
  })
  for (const title of ['', 'x'.repeat(serverNameCharsMax + 1), '\ud800'])
    expect(await about({ title, description: 'It serves.' })).toEqual({ description: 'It serves.' })
  expect(await about({ title: 'A', description: 'x'.repeat(serverDescriptionCharsMax + 1) })).toEqual({
    displayName: 'A',
  })
})

test('definitions that a write would refuse are not kept, and what is wrong is said', async () => {
  for (const [tools, problem] of [
    [tool('a', nested(jsonDepthMax - 3)), /^The server's tools are wrong: .*nested/],
    [tool('a', nested(20_000)), /nested/],
    [tool(''), /^The server's tools are wrong: tools\[0\]\.name: is empty$/],
    [`${tool('a')},${tool('a')}`, /^The server's tools are wrong: tools\[1\]\.name: is given twice$/],
    [tool('a', '{"type":"object","x":"\\ud800"}'), /surrogate/],
    [tool(7), /^The server's lists cannot be read$/],
  ] as const)
    expect({ tools: tools.slice(0, 50), problem: await problemOf(tools) }).toEqual({
      tools: tools.slice(0, 50),
      problem: expect.stringMatching(problem),
    })
})

test('what a server does instead of a list is told', async () => {
  const { found } = await introspected({ error: { code: -32_603, message: 'not today' } })
  expect(found).toEqual({
    // The lists that it returns are kept.
    introspected: { resources, prompts: null },
    about: {},
    problems: ['The server does not list its tools, but answers: not today'],
  })
  const long = await problemOf({ error: { code: -32_603, message: 'x'.repeat(1000) } })
  expect(long).toEndWith(`answers: ${'x'.repeat(serverErrorCharsMax)}…`)
  expect(await problemOf({ status: 500 })).toBe(
    'The server does not answer in MCP: check the URL of the connection (it answered 500)',
  )
})

test('a server that was greeted is not greeted again in another revision', async () => {
  for (const list of [{ status: 404 }, { error: { code: -32_601, message: 'no' } }])
    expect(
      (await introspected(list)).sent.filter((method) => method === 'initialize' || method.startsWith('server/')),
    ).toEqual(['initialize'])
})

test('what a server has is checked in steps: a megabyte of keys takes a tenth of a second', async () => {
  const keys = (page: number) => Array.from({ length: 15_000 }, (_, i) => `"k\\n${page} ${i}":1`).join()
  const tool = (page: number) => `{"name":"t${page}","inputSchema":{"type":"object","x":{${keys(page)}}}}`
  const { found, steps } = await introspected([tool(0), tool(1)])
  expect(found.problems).toEqual([])
  expect(steps).toBeGreaterThan(30)
})
