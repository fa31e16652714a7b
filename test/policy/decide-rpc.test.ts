import { describe, expect, test } from 'bun:test'
import { readPolicy } from '../../src/policy/block.ts'
import { type Access, decide, decideOnConnection, decideOnMessage } from '../../src/policy/decide.ts'
import { couldCall, hasRpcRules, restrictsArguments, toolRules } from '../../src/policy/tools.ts'
import { costToAsk } from '../../src/schema/patterns.ts'
import { drained } from '../../src/schema/steps.ts'

function blocksOf(...rules: Record<string, string>[]) {
  const read = readPolicy(rules.map((rpcReqMatch) => ({ rpcReqMatch })))
  if ('problem' in read) throw new Error(JSON.stringify(read.problem))
  return read.blocks
}
const access: Access = {
  namespace: 'acme',
  resource: 'connections',
  operation: 'execute',
  metadata: { connectionId: 'c1', metadata: null },
}
/** 'allowed', or the rule that refuses. */
function outcome(rules: Record<string, string>[], rpc: unknown, isReply = false): string {
  const decision = decide(blocksOf(...rules), { ...access, rpc, isReply })
  return decision.allowed ? 'allowed' : `${decision.block}.${decision.field}.${decision.path}`
}
const oneTool = { 'params.name': '^issues\\.get$' }
const call = (name: string) => ({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name } })

test('a policy speaks of arguments where one rule of one block does', () => {
  expect(restrictsArguments(blocksOf(oneTool, { method: '.' }))).toBe(false)
  expect(restrictsArguments(blocksOf(oneTool, { method: '.', 'params.arguments.owner': '^me$' }))).toBe(true)
  expect(restrictsArguments([])).toBe(false)
})

describe('a token for one tool', () => {
  test('calls it and no other, and the refusal names the rule', () => {
    expect(outcome([oneTool], call('issues.get'))).toBe('allowed')
    expect(outcome([oneTool], call('issues.drop'))).toBe('0.rpcReqMatch.params.name')
    expect(outcome([{ method: '.' }, { id: '^1$', ...oneTool }], call('x'))).toBe('1.rpcReqMatch.params.name')
  })
  for (const method of ['initialize', 'ping', 'server/discover', 'tools/list', 'notifications/initialized']) {
    test(`may say ${method} first`, () => {
      const body = { jsonrpc: '2.0', ...(!method.startsWith('notifications/') && { id: 1 }), method }
      expect(outcome([oneTool], body)).toBe('allowed')
      expect(outcome([{ method: '^tools/call$' }], body)).toBe('0.rpcReqMatch.method')
      expect(outcome([{ params: '.' }], body)).toBe('0.rpcReqMatch.params')
    })
  }
  test('may not say what is called a notification and is a request', () => {
    const body = { jsonrpc: '2.0', id: 1, method: 'notifications/initialized' }
    expect(outcome([oneTool], body)).toBe('0.rpcReqMatch.params.name')
    expect(outcome([{ method: '.' }], body)).toBe('allowed')
  })
  for (const method of [
    'resources/read',
    'Initialize',
    'initialize/x',
    'xtools/list',
    'tools/listx',
    'notifications',
    '',
  ]) {
    test(`may not say ${JSON.stringify(method)}`, () => {
      expect(outcome([oneTool], { jsonrpc: '2.0', id: 1, method })).toBe('0.rpcReqMatch.params.name')
    })
  }
  test('what has no method of its own, or none that is a string, is no preliminary', () => {
    for (const body of [
      null,
      'ping',
      undefined,
      5,
      [],
      {},
      { method: ['ping'] },
      { method: null },
      Object.create({ method: 'ping' }),
    ]) {
      // Without a body there is no MCP request to speak of.
      expect(outcome([oneTool], body)).toBe(body === undefined ? 'allowed' : '0.rpcReqMatch.params.name')
    }
  })
  test('a reply passes in a session of its own, where the block is about calls alone', () => {
    const reply = { jsonrpc: '2.0', id: 1, result: {} }
    expect(outcome([oneTool], reply)).toBe('0.rpcReqMatch.params.name')
    expect(outcome([oneTool], reply, true)).toBe('allowed')
    expect(outcome([oneTool, { 'params.a': '.', 'params.b': '.' }], reply, true)).toBe('allowed')
    expect(outcome([{ ...oneTool, method: '.' }], reply, true)).not.toBe('allowed')
    expect(outcome([{ ...oneTool, method: '.' }], call('issues.get'), false)).toBe('allowed')
  })
})

test('other refusals name no rule', () => {
  const decision = decide([{ operations: ['read'] }] as never, access)
  expect(decision).toEqual({ allowed: false, block: 0, field: 'operations', visible: true })
})

test('of a connection that is there, what the constraints hide is hidden before anything is forbidden', () => {
  const read = readPolicy([{ operations: 'read' }, { metadata: { team: 'x' } }])
  if ('problem' in read) throw new Error('the policy is fine')
  expect(decideOnConnection(read.blocks, access)).toEqual({
    allowed: false,
    block: 1,
    field: 'metadata',
    visible: false,
  })
  const seen = { ...access, metadata: { connectionId: 'c1', metadata: { team: 'x' } } }
  expect(decideOnConnection(read.blocks, seen)).toEqual({
    allowed: false,
    block: 0,
    field: 'operations',
    visible: true,
  })
  expect(decideOnConnection(read.blocks, { ...seen, operation: 'read' })).toEqual({ allowed: true })
})

describe('a tool is shown unless it could never be called', () => {
  const rows: [rules: Record<string, string>[], isShown: boolean][] = [
    [[], true],
    [[{ method: '^tools/call$' }], true],
    [[{ method: '^tools/list$' }], false],
    [[{ jsonrpc: '^2' }], true],
    [[{ 'params.name': '^issues\\.' }], true],
    [[{ 'params.name': '^files\\.' }], false],
    [[{ 'params.name.x': '.' }], false],
    [[{ params: '.' }], false],
    [[{ id: '^1$' }], true],
    [[{ 'params.arguments.to': '^a' }], true],
    [[{ 'params._meta.x': '^a' }], true],
    [[{ 'params.name': '^issues\\.', 'params.arguments.to': '^a' }], true],
    [[{ 'params.arguments.to': '^a' }, { 'params.name': '^files\\.' }], false],
  ]
  for (const [rules, isShown] of rows) {
    test(`${JSON.stringify(rules)}: ${isShown}`, () =>
      expect(drained(couldCall(toolRules(rules.length === 0 ? [] : blocksOf(...rules)), 'issues.get'))).toBe(isShown))
  }
})

test('rules that no tool’s name could answer are read once, and not for each tool', () => {
  const rules = Array.from({ length: 15 }, (_, i) => ({ [`params.arguments.a${i}`]: 'x', [`id${i}`]: 'x' }))
  const read = toolRules(blocksOf(...rules, oneTool))
  expect(read.asked).toEqual([{ path: 'params.name', pattern: '^issues\\.get$' }])
  expect([...couldCall(read, 'issues.get')]).toHaveLength(1)
})

test('a list of tools is narrowed where any block says something of requests', () => {
  const plain = readPolicy([{ operations: 'execute' }])
  if ('problem' in plain) throw new Error('the policy is fine')
  expect(hasRpcRules([])).toBe(false)
  expect(hasRpcRules(plain.blocks)).toBe(false)
  expect(hasRpcRules([...plain.blocks, ...blocksOf(oneTool)])).toBe(true)
})

test('each rule says its cost before it is asked, on messages and on tools', () => {
  const costsOf = (steps: Generator<number, unknown>) => {
    const costs: number[] = []
    for (let step = steps.next(); !step.done; step = steps.next()) costs.push(step.value)
    return costs
  }
  const rules = [{ method: '^tools/call$', 'params.name': '^issues' }, { 'params.arguments.id': '^x' }]
  const message = { ...call('issues.get'), params: { name: 'issues.get', arguments: { id: 'xyz' } } }
  const blocks = blocksOf(...rules)
  // Once they are compiled.
  drained(decideOnMessage(blocks, { ...access, rpc: message }))
  const [method, name, id] = [
    costToAsk('^tools/call$', 'tools/call'),
    costToAsk('^issues', 'issues.get'),
    costToAsk('^x', 'xyz'),
  ]
  expect(costsOf(decideOnMessage(blocks, { ...access, rpc: message }))).toEqual([method, name, id])
  expect(costsOf(decideOnMessage(blocks, { ...access, rpc: { ...message, method: 'other' } }))).toHaveLength(1)
  expect(costsOf(decideOnMessage(blocks, access))).toEqual([])
  expect(costsOf(couldCall(toolRules(blocks), 'issues.get'))).toEqual([method, name])
})
