/**
 * A member is removed at any moment of a request: whatever the request waits for then, nothing that the request does
 * comes after it.
 */

import { describe, expect, test } from 'bun:test'
import { createFairness, type Fairness } from '../../src/fairness/fairness.ts'
import type { Work } from '../../src/fairness/turns.ts'
import { drained } from '../../src/schema/steps.ts'
import { directoryVersionKey, keyOf } from '../../src/storage/keys.ts'
import type { Store } from '../../src/storage/store.ts'
import type { Upstream } from '../../src/upstream/upstream.ts'
import { apiOf } from '../support/api.ts'
import { openMemoryStore } from '../support/memory-store.ts'
import { createTestPlatform, seed, source, type TestPlatform } from '../support/platform.ts'

const bob = 'a-key-of-bob-who-is-removed-00000001'
const operator = 'a-key-of-an-operator-who-removes-0001'
const mcpUrl = 'https://x.example.com/mcp'
const server = { displayName: 'Tools', description: '', remote: true, connections: [], tools: [] }
const keys = source('keys.json', {
  apiKeys: [
    { userId: 'bob', key: bob },
    { userId: 'root', key: operator, operator: true },
  ],
})
/** Each larger than the records that are parsed without the owner's time. */
const metadata = { note: 'x'.repeat(40_000) }

async function makeWorld({ fetch }: TestPlatform): Promise<void> {
  const root = apiOf(fetch, operator)
  const made = [
    await root('PUT /organizations/org', { owner: 'root' }),
    await root('PUT /organizations/org/members/bob', { role: 'admin' }),
    await root('PUT /namespaces/shared', { organizationId: 'org' }),
    await root('PUT /servers/shared/tools', server),
    await root('PUT /servers/shared/hidden', { ...server, displayName: 'Hidden', unlisted: true }),
    await root('PUT /namespaces/shared/views/few', { policy: [{ operations: 'read' }] }),
    await root('POST /organizations/org/api-keys', { name: 'ci' }),
    await root('PUT /connect/shared/far', { mcpUrl, metadata }),
    await root('PUT /connect/shared/pinned', { mcpUrl, metadata, pins: 'block' }),
  ]
  expect(made.filter(({ status }) => status >= 300)).toEqual([])
}

const rpc = (method: string, params: object = {}) => ({ jsonrpc: '2.0', id: 1, method, params })
const call = (name: string) => rpc('tools/call', { name, arguments: {} })
const headers = {
  authorization: `Bearer ${bob}`,
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
}

interface Run {
  readonly platform: TestPlatform
  /** Waits of the request since it began. */
  waits: number
  /** Called in each of them. */
  onWait: (wait: number) => Promise<unknown>
  /** Writes and calls of tools, as they begin. */
  readonly done: string[]
  /** That of the server's tool. */
  description: string
}

/** A platform in which every request waits a moment wherever it may have to: for time, a turn, a place, a pass. */
async function begin(fastLane = false): Promise<Run> {
  const memory = openMemoryStore()
  const done: string[] = []
  const run = { waits: 0, onWait: async () => {}, done, description: 'First' } as unknown as Run & {
    platform: TestPlatform
  }
  const store: Store = {
    ...memory,
    async commit(write) {
      done.push('writes')
      return memory.commit(write)
    },
  }
  const upstream: Upstream = {
    async send({ body }) {
      const { id, method } = JSON.parse(Buffer.from(body ?? '{}').toString())
      if (method === 'tools/call') done.push('calls a tool')
      if (id === undefined) return { status: 202, headers: {}, body: undefined }
      const text = JSON.stringify({ jsonrpc: '2.0', id, result: resultOf(method, run.description) })
      return { status: 200, headers: { 'content-type': 'application/json' }, body: new Uint8Array(Buffer.from(text)) }
    },
  }
  const fairness = waiting(async () => {
    run.waits += 1
    await run.onWait(run.waits)
    if (run.platform !== undefined) run.platform.now += 100
  })
  run.platform = await createTestPlatform({ sources: [keys], store, upstream, fairness, fastLane })
  await makeWorld(run.platform)
  done.length = 0
  run.waits = 0
  return run
}

/** Everything that requests share, of which none is free at once. */
function waiting(wait: () => Promise<void>): Fairness {
  const fairness = createFairness()
  let hasPaid = false
  const enter = async () => {
    await wait()
    return () => {}
  }
  const places = { enter, enterNow: () => undefined }
  return {
    ...fairness,
    ...{ reads: places, questions: places, logReads: places, parsers: places, parses: places },
    ...{ commits: places, removals: places },
    time: {
      wait: () => (hasPaid ? 0 : 1),
      spendAtOnce() {},
      spend() {
        hasPaid = false
      },
      async pause() {
        await wait()
        hasPaid = true
      },
    },
    turns: Object.assign(fairness.turns, {
      run: (_: unknown, work: Work<unknown>) => wait().then(() => drained(work)),
    }),
    passes: { isFull: () => true, enter: wait },
    writes: { run: (_: string, __: unknown, task: () => Promise<unknown>) => wait().then(task) },
  } as unknown as Fairness
}

function resultOf(method: string, description: string): object {
  if (method === 'tools/list') return { tools: [{ name: 'do', description, inputSchema: { type: 'object' } }] }
  if (method === 'initialize')
    return { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } }
  return { content: [] }
}

/** An acceptance of a definition that has changed. */
async function changedPins(run: Run): Promise<object> {
  const bobs = apiOf(run.platform.fetch, bob)
  const listed = () => bobs('POST /connect/shared/pinned/mcp', rpc('tools/list'))
  await listed()
  run.description = 'Changed'
  await listed()
  const { body } = await bobs('GET /connect/shared/pinned/.pins')
  return { accept: { do: body.tools[0].hash } }
}

async function remove({ platform, done }: Run): Promise<void> {
  await platform.store.commit({
    deletes: [keyOf('member', 'org', 'bob'), keyOf('membership', 'bob', 'org')],
    puts: [{ key: directoryVersionKey, value: seed('another') }],
  })
  done.pop()
}

type Operation = [method: string, path: string, body?: object | ((run: Run) => Promise<object>)]

const reads: Record<string, Operation> = {
  'reads a connection': ['GET', '/connect/shared/far'],
  'lists connections': ['GET', '/connect/shared?name=far'],
  'lists what needs somebody': ['GET', '/connect/shared/.health?ids=far'],
  'looks at everything': ['GET', '/overview'],
  'lists the tools of the namespace': ['GET', '/connect/shared/.tools'],
  'lists them over MCP': ['POST', '/connect/shared/mcp', rpc('tools/list')],
  'lists the views of the namespace': ['GET', '/namespaces/shared/views'],
  'lists its namespaces': ['GET', '/namespaces'],
  'asks who it is': ['GET', '/me'],
  'reads the organization': ['GET', '/organizations/org'],
  'lists keys of the organization': ['GET', '/organizations/org/api-keys'],
  'lists servers': ['GET', '/servers?q=hidden'],
  'reads pins': ['GET', '/connect/shared/pinned/.pins'],
  'asks whether it may call': [
    'POST',
    '/tokens/explain',
    { request: { namespace: 'shared', connection: 'far', tool: 'do' } },
  ],
  'asks what its key covers': ['POST', '/tokens/coverage', {}],
  'mints a token of its organization': ['POST', '/tokens', { organizationId: 'org' }],
}

const operations: Record<string, Operation> = {
  'accepts pins': ['POST', '/connect/shared/pinned/.pins', changedPins],
  'deletes a connection': ['DELETE', '/connect/shared/far'],
  'changes a connection': ['PUT', '/connect/shared/far', { name: 'Far' }],
  'makes a connection': ['PUT', '/connect/shared/new', { mcpUrl }],
  'tests a connection': ['POST', '/connect/shared/far/.test'],
  'calls a tool': ['POST', '/connect/shared/far/mcp', call('do')],
  'calls a tool that is pinned': ['POST', '/connect/shared/pinned/mcp', call('do')],
  'calls a tool of the namespace': ['POST', '/connect/shared/mcp', call('far__do')],
  'calls a tool over plain HTTP': ['POST', '/connect/shared/far/.tools/do', {}],
  'registers a server': ['PUT', '/servers/shared/new', server],
  'deletes a server': ['DELETE', '/servers/shared/tools'],
  'makes a view': ['PUT', '/namespaces/shared/views/few', { policy: [] }],
  'makes a link to the registry': ['POST', '/namespaces/shared/registry-links', {}],
  'changes the namespace': ['PATCH', '/namespaces/shared', { pins: 'block' }],
  'adds a member': ['PUT', '/organizations/org/members/eve', { role: 'member' }],
  'makes a key of the organization': ['POST', '/organizations/org/api-keys', { name: 'ci' }],
}

interface Asked {
  readonly run: Run
  readonly response: Response
  /** The writes and calls that began after the member was removed. */
  readonly late: readonly string[]
}

/** Sends the request once for each of its waits, and removes the member in that one. */
async function* removedInEachWait([method, path, given]: Operation, isRemembered = false): AsyncGenerator<Asked> {
  const send = async (run: Run, onWait = run.onWait) => {
    const body = typeof given === 'function' ? await given(run) : given
    // The fast lane then knows what the member may see.
    for (let i = 0; isRemembered && i < 2; i += 1) await run.platform.fetch(path, { method, headers })
    run.waits = 0
    run.done.length = 0
    run.onWait = onWait
    return run.platform.fetch(path, { method, headers, ...(body && { body: JSON.stringify(body) }) })
  }
  const whole = await begin(isRemembered)
  const response = await send(whole)
  expect([response.status, response.status < 300 || (await response.text())]).toEqual([response.status, true])
  yield { run: whole, response, late: whole.done }
  const { waits } = whole
  for (let at = 1; at <= waits; at += 1) {
    const run = await begin(isRemembered)
    let before: number | undefined
    const response = await send(run, async (wait) => {
      if (wait !== at) return
      await remove(run)
      before = run.done.length
    })
    // Some things are compiled once in a process.
    if (before !== undefined) yield { run, response, late: run.done.slice(before) }
  }
}

describe('a member that is removed', () => {
  for (const [what, operation] of Object.entries(operations))
    test(`while it ${what}`, async () => {
      // Lists and pins are kept by the platform itself, whoever asked for them.
      const isAct = (one: string) => !what.startsWith('calls') || one === 'calls a tool'
      const late: (readonly string[])[] = []
      for await (const one of removedInEachWait(operation)) late.push(one.late.filter(isAct))
      const [whole, ...others] = late
      expect(whole).not.toEqual([])
      expect(others.flat()).toEqual([])
    })

  const all = Object.entries(reads).map(([what, operation]) => ({ what, operation, isRemembered: false }))
  const again = { what: 'reads pins that it has read before', operation: reads['reads pins'] as Operation }
  for (const { what, operation, isRemembered } of [...all, { ...again, isRemembered: true }])
    test(`while it ${what}`, async () => {
      const told: boolean[] = []
      for await (const { response } of removedInEachWait(operation, isRemembered))
        told.push(
          /"far"|"pinned"|"total":[1-9]|far__|"token":"|"shared"|shared\/hidden|"few"|"org"|"ci"|"pins"|"verdict":"allow"/.test(
            await response.text(),
          ),
        )
      const [whole, ...others] = told
      expect(whole).toBe(true)
      expect(others).toEqual(others.map(() => false))
    })
})
