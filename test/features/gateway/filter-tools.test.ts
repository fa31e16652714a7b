/** Answers to `tools/list`, looked into for a token. */

import { expect, test } from 'bun:test'
import {
  filterTools,
  narrowingCostMax,
  parsedResponseDepthMax,
  parsedResponseKeysMax,
  parsedResponseValuesMax,
  parsingResponse,
} from '../../../src/features/gateway/filter-tools.ts'
import { parsedResponseCharsMax } from '../../../src/limits.ts'
import { type Block, readConstraint } from '../../../src/policy/block.ts'
import { costToAsk, patternProblem } from '../../../src/schema/patterns.ts'
import { drained } from '../../../src/schema/steps.ts'

const parseResponse = (text: string) => drained(parsingResponse(text))

function blockOf(constraint: object): Block {
  const read = readConstraint(constraint as Parameters<typeof readConstraint>[0])
  if ('problem' in read) throw new Error(JSON.stringify(read.problem))
  return read.block
}
const issuesOnly = [blockOf({ rpcReqMatch: { 'params.name': '^issues\\.' } })]

function filtered(text: string, blocks: readonly Block[] = issuesOnly): string {
  const work = filterTools(text, blocks)
  for (;;) {
    const step = work.next()
    if (step.done) return step.value
    expect(step.value).toBeGreaterThanOrEqual(0)
  }
}
const answer = (result: unknown) => JSON.stringify({ jsonrpc: '2.0', id: 1, result })
const namesIn = (text: string) => JSON.parse(text).result.tools.map(({ name }: { name: string }) => name)

test('tools that the token could never call are left out, and everything else stays', () => {
  const tools = [{ name: 'issues.get', title: 'Get' }, { name: 'files.drop' }, { name: 'issues.list' }]
  const shown = filtered(answer({ tools, nextCursor: 'c', _meta: { a: 1 } }))
  expect(JSON.parse(shown)).toEqual({
    jsonrpc: '2.0',
    id: 1,
    result: { tools: [tools[0], tools[2]], nextCursor: 'c', _meta: { a: 1 } },
  })
})

test('what has no name of its own cannot be called, and is not shown', () => {
  const nameless =
    '{}, null, "issues.get", [], {"name":null}, {"name":["issues.get"]}, {"__proto__":{"name":"issues.get"}}'
  expect(namesIn(filtered(`{"result":{"tools":[${nameless}, {"name":"issues.get"}]}}`))).toEqual(['issues.get'])
})

test('a list that is none shows nothing', () => {
  for (const tools of ['"issues.get"', '{"0":{"name":"issues.get"}}', 'null', '1'])
    expect(JSON.parse(filtered(`{"result":{"tools":${tools}}}`))).toEqual({ result: { tools: [] } })
})

test('a list that others may keep becomes this caller’s', () => {
  expect(JSON.parse(filtered(answer({ tools: [], cacheScope: 'public' }))).result.cacheScope).toBe('private')
  expect('cacheScope' in JSON.parse(filtered(answer({ tools: [] }))).result).toBe(false)
})

test('a message that lists no tools is written anew, and says the same', () => {
  for (const message of [
    '{"method":"notifications/progress"}',
    '{"result":null}',
    '{"result":"tools"}',
    '{"result":[]}',
  ])
    expect(filtered(message)).toBe(message)
  expect(filtered('{"result":{"a":1},"result":{"tools":[{"name":"files.drop"}]}}')).toBe('{"result":{"tools":[]}}')
})

test('an event that is there for its id alone stays empty', () => {
  expect(filtered('')).toBe('')
})

test('what is no JSON object cannot be looked into', () => {
  for (const text of ['[]', '[{"result":{"tools":[]}}]', 'null', '"a"', '1', '{', ' '])
    expect(() => filtered(text)).toThrow(SyntaxError)
})

test('what is nested too deep is not read', () => {
  const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`
  expect(parseResponse(nested(parsedResponseDepthMax))).toBeArray()
  expect(() => parseResponse(nested(parsedResponseDepthMax + 1))).toThrow('too deeply nested')
})

test('an answer is read up to its last character, key and value', () => {
  const long = (characters: number) => `"${'x'.repeat(characters - 2)}"`
  expect(parseResponse(long(parsedResponseCharsMax))).toHaveLength(parsedResponseCharsMax - 2)
  expect(() => parseResponse(long(parsedResponseCharsMax + 1))).toThrow('too large')
  const keys = (count: number) => `[${Array(count).fill('{"a":1}').join()}]`
  expect(parseResponse(keys(parsedResponseKeysMax))).toHaveLength(parsedResponseKeysMax)
  expect(() => parseResponse(keys(parsedResponseKeysMax + 1))).toThrow('too large')
  expect(() => parseResponse(`[${'1,'.repeat(parsedResponseValuesMax)}1]`)).toThrow('too large')
})

test('a list costs so much, and one tool more is too many', () => {
  const pattern = 'a{700}|b'
  expect(patternProblem(pattern)).toBeUndefined()
  const name = 'b'.repeat(128)
  const count = Math.floor(narrowingCostMax / costToAsk(pattern, name))
  const list = (tools: number) => answer({ tools: Array(tools).fill({ name }) })
  const blocks = [blockOf({ rpcReqMatch: { 'params.name': pattern } })]
  expect(namesIn(filtered(list(count), blocks))).toHaveLength(count)
  expect(() => filtered(list(count + 1), blocks)).toThrow('lists too many tools')
})

test('bounds in the schemas of tools keep their digits', () => {
  const schema = '{"type":"object","properties":{"id":{"maximum":9223372036854775807}}}'
  const text = `{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"issues.get","inputSchema":${schema}}]}}`
  expect(filtered(text)).toBe(text)
})
