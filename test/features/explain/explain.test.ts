/**
 * `POST /tokens/explain` says what the real endpoints do, in both directions, and nothing that could not be found out
 * by asking.
 */

import { beforeAll, describe, expect, test } from 'bun:test'
import type { Explanation } from '../../../src/model/explain.ts'
import { mintToken } from '../../api/cases.ts'
import { apiOf } from '../../support/api.ts'
import { cookieIn, post } from '../../support/pages.ts'
import { createTestPlatform, issuer, type TestPlatform } from '../../support/platform.ts'
import { type Random, random } from '../../support/random.ts'
import { callTool, signInWith } from '../authorization/world.ts'
import { ada, adas, eve, operator, pickConstraint, spare, teams, world } from './acme.ts'

let platform: TestPlatform
beforeAll(async () => {
  platform = await createTestPlatform({ sources: [world] })
})

async function ask(method: string, path: string, key: string, body?: unknown) {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json', accept: '*/*' }
  const response = await platform.fetch(path, {
    method,
    headers,
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  return { status: response.status, text: await response.text() }
}

async function explain(key: string, body: object): Promise<Explanation> {
  const { status, text } = await ask('POST', '/tokens/explain', key, body)
  expect({ status, text }).toEqual({ status: 200, text: expect.any(String) })
  return JSON.parse(text)
}

interface Asked {
  readonly request: object
  /** Sends the request; what it changed is as before then. */
  send(key: string): Promise<{ status: number; text: string }>
}

function pickRequest(chance: Random): Asked {
  const namespace = chance.pick(['acme', 'acme', 'lab', 'eves', 'nowhere'])
  const connection = chance.pick(['crm', 'crm-eu', 'mail', 'none'])
  const at = `/connect/${namespace}/${connection}`
  const metadata = { team: chance.pick(teams), level: chance.pick(['1', 1]) }
  const params = chance.pick([
    { name: 'find', arguments: { repo: 'abc' } },
    { name: 'find.all', arguments: {} },
    { name: 'delete_account', arguments: { repo: 7 } },
    { name: 'find' },
  ])
  const message = chance.pick([
    { jsonrpc: '2.0', id: 1, method: 'tools/call', params },
    { jsonrpc: '2.0', id: 2, method: 'tools/call', params },
    { jsonrpc: '2.0', id: 1, method: 'tools/list' },
    { jsonrpc: '2.0', id: 1, method: 'ping' },
    { jsonrpc: '2.0', id: 1, method: 'prompts/list' },
  ])
  return chance.pick<Asked>([
    {
      request: { namespace, resource: 'connections', operation: 'read' },
      send: (key) => ask('GET', `/connect/${namespace}`, key),
    },
    { request: { namespace, connection, operation: 'read' }, send: (key) => ask('GET', at, key) },
    { request: { namespace, connection, message }, send: (key) => ask('POST', `${at}/mcp`, key, message) },
    { request: { namespace, connection, message }, send: (key) => ask('POST', `${at}/mcp`, key, message) },
    {
      request: { namespace, connection: 'spare', operation: 'write' },
      async send(key) {
        const removed = await ask('DELETE', `/connect/${namespace}/spare`, key)
        if (removed.status < 300) await ask('PUT', `/connect/${namespace}/spare`, operator, spare)
        return removed
      },
    },
    {
      request: { namespace, operation: 'write', metadata: { ...metadata, connectionId: 'made' } },
      async send(key) {
        const made = await ask('PUT', `/connect/${namespace}/made`, key, { mcpUrl: 'https://y.example.com', metadata })
        await ask('DELETE', `/connect/${namespace}/made`, operator)
        return made
      },
    },
    {
      request: { namespace, resource: 'namespaces', operation: 'read' },
      send: (key) => ask('GET', `/namespaces/${namespace}`, key),
    },
    { request: { resource: 'namespaces', operation: 'read' }, send: (key) => ask('GET', '/namespaces', key) },
    { request: { resource: 'servers', operation: 'read' }, send: (key) => ask('GET', '/servers', key) },
    {
      request: { namespace, resource: 'servers', operation: 'write' },
      async send(key) {
        const made = await ask('PUT', `/servers/${namespace}/made`, key, {})
        await ask('DELETE', `/servers/${namespace}/made`, operator)
        return made
      },
    },
  ])
}

const refusing = [401, 403, 404]

for (const seed of [1, 2, 3, 4]) {
  test(`the verdict is what the endpoints do (seed ${seed})`, async () => {
    const chance = random(seed)
    const seen = { allow: 0, refuse: 0, depends: 0 }
    for (let round = 0; round < 40; round += 1) {
      const parent = await mintToken(platform.fetch, ada, { policy: [pickConstraint(chance)] })
      const policy = [pickConstraint(chance)]
      const token = await mintToken(platform.fetch, parent, { policy })
      for (let asked = 0; asked < 6; asked += 1) {
        const { request, send } = pickRequest(chance)
        const real = await send(token)
        // The parent is no holder of what it may mint; the key of its user is.
        const explained = await explain(ada, { token, request })
        const { verdict, status, decidedBy } = explained
        seen[verdict] += 1
        const of = { policy, request, real, verdict, status, decidedBy }
        if (verdict === 'refuse') expect({ ...of, real: real.status }).toEqual({ ...of, real: status as number })
        else expect({ ...of, isRefused: refusing.includes(real.status) }).toEqual({ ...of, isRefused: false })
        if (real.status === 403 && decidedBy !== null && 'field' in decidedBy)
          expect({ ...of, text: real.text }).toEqual({ ...of, text: expect.stringContaining(`: ${decidedBy.place}"`) })
        // To the token itself, what its own constraints hide does not exist; and its parent could mint it again.
        for (const other of [await explain(token, { request }), await explain(parent, { policy, request })])
          expect({ ...of, verdict: other.verdict, status: other.status }).toEqual(of)
      }
    }
    expect(Math.min(seen.allow, seen.refuse)).toBeGreaterThan(20)
  })
}

const call = (name: string) => ({ namespace: 'acme', connection: 'crm', tool: name })
const readers = [{ namespaces: 'acme', operations: ['read', 'execute'], rpcReqMatch: { 'params.name': '^find' } }]

describe('a token', () => {
  test('is explained to its user’s keys, to itself, to its ancestors and to operators, and to nobody else', async () => {
    const parent = await mintToken(platform.fetch, ada, { policy: readers })
    const token = await mintToken(platform.fetch, parent, { policy: [{ metadata: { team: 'sales' } }] })
    const sibling = await mintToken(platform.fetch, ada, { policy: readers })
    for (const key of [ada, adas, operator, parent, token]) {
      const { token: shown, verdict } = await explain(key, { token, request: call('find') })
      expect([shown?.userId, shown?.state, shown?.parents.length, verdict]).toEqual(['ada', 'active', 1, 'allow'])
    }
    const forged = `${token.slice(0, -3)}AAA`
    const unknown = await ask('POST', '/tokens/explain', eve, { token: 'nothing' })
    expect(unknown.status).toBe(404)
    for (const [key, text] of [
      [eve, token],
      [sibling, token],
      [token, parent],
      [ada, forged],
      [ada, `${token}x`],
      [ada, ada],
    ])
      expect(await ask('POST', '/tokens/explain', key as string, { token: text })).toEqual(unknown)
  })

  test('that has expired or was revoked is refused with 401, and still explained', async () => {
    const own = await createTestPlatform({ sources: [world] })
    const fetch = (path: string, body: object, key = ada) =>
      own.fetch(path, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
    const stateOf = async (token: string) => {
      const {
        status,
        decidedBy,
        token: shown,
      } = (await (await fetch('/tokens/explain', { token })).json()) as Explanation
      return [status, decidedBy?.place, shown?.state]
    }
    const [first, second] = [
      await mintToken(own.fetch, ada),
      await mintToken(own.fetch, ada, { policy: [{ ttl: 60 }] }),
    ]
    const child = await mintToken(own.fetch, first)
    expect(await stateOf(child)).toEqual([null, 'reach', 'active'])
    await fetch('/tokens/revoke', { token: first })
    for (const token of [first, child]) expect(await stateOf(token)).toEqual([401, 'token', 'revoked'])
    own.now += 61_000
    expect(await stateOf(second)).toEqual([401, 'token', 'expired'])
  })
})

test('a token that a client got at a view is narrowed by the view, and is none once that is gone', async () => {
  const own = await createTestPlatform({ sources: [world] })
  const asAda = apiOf(own.fetch, ada)
  const view = 'PUT /namespaces/acme/views/reading'
  expect((await asAda(view, { policy: [{ rpcReqMatch: { 'params.name': '^find$' } }] })).status).toBe(201)
  const endpoint = '/connect/acme/mcp/reading'
  const cookie = cookieIn(await post(own, '/signin', { key: ada }))
  const { answer } = await signInWith(own, cookie, {}, { resource: `${issuer}${endpoint}` })
  const { access_token: token } = answer
  const verdictOf = async (tool: string) => {
    const { body } = await asAda('POST /tokens/explain', { token, request: { namespace: 'acme', tool } })
    return [body.verdict, body.decidedBy?.place]
  }
  expect((await callTool(own, token, 'crm__find', endpoint)).status).toBe(200)
  expect((await callTool(own, token, 'crm__delete_account', endpoint)).text).toContain('view.policy[0].rpcReqMatch')
  expect((await verdictOf('find'))[0]).not.toBe('refuse')
  expect(await verdictOf('delete_account')).toEqual(['refuse', 'view.policy[0].rpcReqMatch.params.name'])
  await asAda('DELETE /namespaces/acme/views/reading')
  expect(await verdictOf('find')).toEqual(['refuse', 'token'])
})

test('what is not known depends, and is named', async () => {
  const policy = [
    { namespaces: 'acme', resources: 'connections', operations: 'execute', metadata: { team: 'sales' } },
    {
      metadata: { team: 'sales', connectionId: 'crm' },
      rpcReqMatch: { 'params.name': '^find$', 'params.arguments.repo': '^a' },
    },
  ]
  const missing = async (request: object) => {
    const { blocks, verdict } = await explain(ada, { policy, request })
    return [verdict, ...new Set(blocks.flatMap(({ constraints }) => constraints.flatMap((one) => one.missing)))]
  }
  expect(await missing({})).toEqual(['depends', 'namespace', 'resource', 'operation', 'metadata', 'message'])
  expect(await missing({ namespace: 'acme', resource: 'connections', operation: 'read' })).toEqual([
    'refuse',
    'metadata',
  ])
  expect(await missing({ namespace: 'acme', operation: 'execute', metadata: { team: 'sales' } })).toEqual([
    'depends',
    'metadata',
    'message',
  ])
  expect(await missing({ namespace: 'acme', operation: 'execute', metadata: { team: 'ops' } })).toEqual([
    'refuse',
    'message',
  ])
  expect(await missing(call('find'))).toEqual(['depends', 'params.arguments.repo'])
  expect(await missing({ ...call('find'), arguments: { repo: 'abc' } })).toEqual(['allow'])
  expect(await missing(call('delete_account'))).toEqual(['refuse', 'params.arguments.repo'])
  const reply = { jsonrpc: '2.0', id: 1, result: {} }
  expect(await missing({ namespace: 'acme', connection: 'crm', message: reply })).toEqual(['depends', 'session'])
  const { decidedBy, blocks } = await explain(ada, { policy, request: call('delete_account') })
  expect(decidedBy).toMatchObject({
    place: 'policy[1].rpcReqMatch.params.name',
    words: 'params.name is "delete_account"; it must contain a match of ^find$',
  })
  // The deciding one is first in its block.
  expect(blocks[1]?.constraints[0]).toEqual(decidedBy as never)
})

test('a number that is no text is none in a message, either', async () => {
  const policy = [{ rpcReqMatch: { 'params.arguments.n': '.' } }]
  const text = JSON.stringify({ policy, request: { namespace: 'acme', connection: 'crm', message: 'M' } })
  const message = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"find","arguments":{"n":-0}}}'
  const headers = { authorization: `Bearer ${ada}`, 'content-type': 'application/json' }
  const body = text.replace('"M"', message)
  const explained = await (await platform.fetch('/tokens/explain', { method: 'POST', headers, body })).json()
  expect((explained as Explanation).verdict).toBe('refuse')
})

test('a tool is listed exactly when its verdict is not `refuse`', async () => {
  const chance = random(7)
  let [shown, hidden] = [0, 0]
  for (let round = 0; round < 40; round += 1) {
    const token = await mintToken(platform.fetch, ada, { policy: [pickConstraint(chance)] })
    const { status, text } = await ask('GET', '/connect/acme/crm/.tools', token)
    if (status !== 200) continue
    const names = JSON.parse(text).tools.map(({ name }: { name: string }) => name)
    for (const name of ['find', 'find.all', 'delete_account']) {
      const { verdict } = await explain(ada, { token, request: call(name) })
      expect({ name, names, isRefused: verdict === 'refuse' }).toEqual({
        name,
        names,
        isRefused: !names.includes(name),
      })
      if (names.includes(name)) shown += 1
      else hidden += 1
    }
  }
  expect(Math.min(shown, hidden)).toBeGreaterThan(10)
})

test('what the caller cannot see is as what is not there, whatever the subject may see', async () => {
  const whole = await mintToken(platform.fetch, ada)
  const narrow = await mintToken(platform.fetch, ada, {
    policy: [{ namespaces: ['lab', 'gone'], metadata: { team: 'ops' } }],
  })
  const hiding = (text: string) => text.replaceAll(/acme|gone|crm(?!-)|none/g, 'X')
  for (const [key, hidden, absent] of [
    [eve, { namespace: 'acme' }, { namespace: 'gone' }],
    [narrow, { namespace: 'acme' }, { namespace: 'gone' }],
    [narrow, { namespace: 'lab', connection: 'crm' }, { namespace: 'lab', connection: 'none' }],
  ] as const) {
    const policy = [{ operations: ['read' as const] }]
    const [one, other] = [
      await ask('POST', '/tokens/explain', key, { policy, request: hidden }),
      await ask('POST', '/tokens/explain', key, { policy, request: absent }),
    ]
    // But for what their own constraint names.
    const outsideOf = ({ text }: typeof one) => hiding(JSON.stringify(JSON.parse(text).outside))
    expect([one.status, outsideOf(one)]).toEqual([other.status, outsideOf(other)])
    expect(JSON.parse(one.text).status).toBe(404)
  }
  const child = await mintToken(platform.fetch, narrow)
  expect((await explain(narrow, { token: child, request: { namespace: 'acme', operation: 'read' } })).status).toBe(404)
  expect((await explain(whole, { request: { namespace: 'acme', connection: 'crm', operation: 'read' } })).verdict).toBe(
    'allow',
  )
})

/** It is greeted, and cannot be reached. */
async function remakeSpare(): Promise<void> {
  await ask('DELETE', '/connect/acme/spare', operator)
  expect((await ask('PUT', '/connect/acme/spare', operator, spare)).status).toBe(201)
}

test('notes say what would stop a call besides', async () => {
  await remakeSpare()
  const notes = async (request: object) => (await explain(ada, { request })).notes.map(({ code }) => code)
  expect(await notes(call('find'))).toEqual([])
  expect(await notes(call('nothing'))).toEqual(['unknown_tool'])
  const { tool, ...where } = call('nothing')
  const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: tool, arguments: {} } }
  expect(await notes({ ...where, message })).toEqual(['unknown_tool'])
  const unreached = { namespace: 'acme', connection: 'spare', tool: 'find' }
  expect(await notes(unreached)).toEqual(['connection_state'])
  expect((await explain(ada, { request: unreached })).notes[0]?.words).toContain(
    'contact its server with `postern connection test ',
  )
  expect(await notes({ namespace: 'eves', connection: 'spare', tool: 'find' })).toEqual([])
})

test('notes say nothing about a call that the caller may not make itself', async () => {
  await remakeSpare()
  const notes = async (policy: object, request: object) => {
    const token = await mintToken(platform.fetch, ada, { policy: [policy] })
    return (await explain(token, { request })).notes
  }
  const toSpare = { namespace: 'acme', connection: 'spare', operation: 'execute' }
  expect(await notes({ operations: 'execute' }, toSpare)).toHaveLength(1)
  expect(await notes({ operations: 'write' }, toSpare)).toEqual([])
  expect(await notes({ operations: 'write' }, { namespace: 'acme', connection: 'spare' })).toEqual([])
  expect(await notes({ operations: 'read' }, call('nothing'))).toEqual([])
  expect(await notes({ rpcReqMatch: { 'params.name': '^find$' } }, call('nothing'))).toEqual([])
})

const refused: [body: unknown, message: RegExp][] = [
  [[], /^the body/],
  [{ nope: 1 }, /nope/],
  [{ token: 'x', policy: readers }, /^token: /],
  [{ policy: [] }, /^policy/],
  [{ policy: [{}] }, /^policy\[0\]/],
  [{ policy: [{ rpcReqMatch: { a: '(' } }] }, /^policy\[0\]\.rpcReqMatch\.a/],
  [{ request: { connection: 'x' } }, /^request\.connection: /],
  [{ request: { namespace: 'a', connection: 'x', metadata: {} } }, /^request\.metadata: /],
  [{ request: { tool: 'x', message: {} } }, /^request\.message: /],
  [{ request: { arguments: {} } }, /^request\.arguments: /],
  [{ request: { tool: 'x', operation: 'read' } }, /^request\.operation: must be execute if the request has tool/],
  [
    { request: { metadata: {}, resource: 'servers' } },
    /^request\.resource: must be connections if the request has metadata/,
  ],
  [{ request: { message: { jsonrpc: '2.0', method: 'tools/call' } } }, /^params\.name: /],
]
for (const [body, message] of refused) {
  test(`400 for ${JSON.stringify(body)}`, async () => {
    const { status, text } = await ask('POST', '/tokens/explain', ada, body)
    expect([status, JSON.parse(text).error]).toEqual([400, 'invalid_request'])
    expect(JSON.parse(text).message).toMatch(message)
  })
}

test('a policy is refused as `POST /tokens` refuses it, and nothing is written', async () => {
  const before = [platform.audited.length, platform.logged.length]
  const long = Array.from({ length: 200 }, () => ({ rpcReqMatch: { a: 'x'.repeat(200) } }))
  for (const body of [{ policy: long }, { organizationId: 'org' }, { policy: [{ ttl: 'x' }] }]) {
    const explained = await ask('POST', '/tokens/explain', ada, body)
    expect(explained).toEqual(await ask('POST', '/tokens', ada, body))
    expect(explained.status).toBeGreaterThan(399)
    platform.audited.length = before[0] as number
  }
  // To the character: of the longest that fit, and the first that does not.
  let [length, status] = [4000, 0]
  for (; status !== 400; length += 1) {
    const policy = [{ metadata: { k: 'x'.repeat(length) } }]
    const explained = await ask('POST', '/tokens/explain', ada, { policy })
    const minted = await ask('POST', '/tokens', ada, { policy })
    status = minted.status
    expect([length, explained.status]).toEqual([length, status])
    if (status === 400) expect(explained).toEqual(minted)
    platform.audited.length = before[0] as number
  }
  expect(length).toBeGreaterThan(4010)
  await explain(ada, { policy: readers, request: call('delete_account') })
  expect([platform.audited.length, platform.logged.length]).toEqual(before as [number, number])
  expect((await ask('POST', '/tokens/explain', 'nobody', {})).status).toBe(401)
})
