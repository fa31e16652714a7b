/** The outcome of a call in an answer that is too large to be parsed: as its parsed form has it. */

import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { isAnswerTo, statedIn, unanswered } from '../../../src/features/gateway/call-outcome.ts'
import { OutcomeSearch } from '../../../src/features/gateway/outcome-search.ts'

/** Names and texts that look like ours, with what a reader may stumble over. */
const word = fc.constantFrom('result', 'error', 'isError', 'a"b', '\\', 'é{', '[', ':true', ',', '', 'x'.repeat(60))
const { value } = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, depthSize: 'small' },
    fc.constantFrom(null, true, false, 1, -32_602),
    word,
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(word, tie('value'), { maxKeys: 4 }),
  ),
}))
const member = <K extends string>(name: K, of: fc.Arbitrary<unknown>) =>
  fc.record({ [name]: of } as Record<K, fc.Arbitrary<unknown>>, { requiredKeys: [] })
const answers = fc
  .tuple(
    fc.dictionary(word, value, { maxKeys: 3 }),
    member('result', fc.oneof(value, member('isError', value))),
    member('error', fc.oneof(value, member('code', value))),
    member('id', fc.constantFrom<unknown>(1, '1', '\u0031', 2, null, 'x', 1.5, [1])),
    fc.oneof({ weight: 5, arbitrary: fc.constant({}) }, { weight: 1, arbitrary: fc.constant({ method: 'x' }) }),
    fc.dictionary(word, value, { maxKeys: 3 }),
  )
  .map((parts) => Object.assign({}, ...parts) as Record<string, unknown>)

function expected(answer: Record<string, unknown>) {
  const { error, result, method } = answer
  if (method !== undefined || !isAnswerTo(1, answer)) return undefined
  if (error !== undefined && error !== null) {
    const { code } = error as { code?: unknown }
    return { outcome: 'rpc_error', ...(typeof code === 'number' && { code }) }
  }
  if (result === undefined) return undefined
  const isError = typeof result === 'object' && (result as { isError?: unknown } | null)?.isError === true
  return { outcome: isError ? 'tool_error' : 'ok' }
}

test('is that of a request whose id has letters of several bytes', () => {
  const search = new OutcomeSearch()
  search.add(Buffer.from('{"id":"é🏕","result":{}}'))
  expect([search.stated('é🏕'), search.stated('e')]).toEqual([{ outcome: 'ok' }, undefined])
})

test('an id that is a number may be written in several ways, and a text is another one', () => {
  const stated = (id: string, rest: string, asked: string | number) => {
    const search = new OutcomeSearch()
    search.add(Buffer.from(`{"id":${id},${rest}}`))
    return search.stated(asked)?.outcome
  }
  for (const id of ['1', '1.0', '1e0', '10e-1']) expect(stated(id, '"result":{}', 1)).toBe('ok')
  expect(stated('1e21', '"result":{}', 1e21)).toBe('ok')
  expect(stated('"1.0"', '"result":{}', 1)).toBeUndefined()
  expect(['null', '"null"', '""'].map((id) => stated(id, '"error":{"code":1}', 1))).toEqual([
    'rpc_error',
    undefined,
    undefined,
  ])
  // Texts that look like what is no id.
  for (const [id, asked] of [
    ['{}', 'another'],
    ['[7]', 'another'],
    ['null', 'null'],
    ['true', 'true'],
    ['1e999', 'Infinity'],
  ] as const)
    expect({ id, outcome: stated(id, '"result":{}', asked) }).toEqual({ id, outcome: undefined })
  const without = new OutcomeSearch()
  without.add(Buffer.from('{"result":{}}'))
  expect(without.stated('')).toBeUndefined()
})

test('a text that clients cannot parse answers nothing', () => {
  for (const text of [
    '{"id" 1,"result":{}}',
    '{"id":1,"result" {}}',
    '{"id":1,"result":{"a" "b"}}',
    '{"id":1 "result":{"a":"b" "c":1}}',
    // An event with a text over two lines of data.
    '{"id":1,"result":{"text":"a\nb"}}',
    `{"id":1,"result":{"text":"${'x'.repeat(100)}\n"}}`,
  ]) {
    expect(() => JSON.parse(text)).toThrow()
    for (const size of [1, 7, text.length]) {
      const search = new OutcomeSearch()
      const bytes = Buffer.from(text)
      for (let at = 0; at < bytes.length; at += size) search.add(bytes.subarray(at, at + size))
      expect({ text, stated: search.stated(1) }).toEqual({ text, stated: undefined })
    }
  }
})

/** Characters as JSON may have them, too. */
const escaped = (text: string) => text.replaceAll('E', String.raw`\u0045`)

test('is that of the parsed answer, however it is written and cut', async () => {
  await fc.assert(
    fc.asyncProperty(
      answers,
      fc.integer({ min: 1, max: 40 }),
      fc.boolean(),
      fc.boolean(),
      async (answer, size, isWide, isEscaped) => {
        const text = JSON.stringify(answer, null, isWide ? 2 : 0)
        const bytes = Buffer.from(isEscaped ? escaped(text) : text)
        const search = new OutcomeSearch()
        for (let at = 0; at < bytes.length; at += size) search.add(bytes.subarray(at, at + size))
        expect(search.stated(1)).toEqual(expected(answer) as never)
        // Parsed, or searched where it is long.
        const owner = { spend() {} } as never
        expect(await statedIn(owner, bytes, 1)).toEqual((expected(answer) ?? unanswered) as never)
        const long = Buffer.concat([Buffer.from(' '.repeat(3000)), bytes])
        expect(await statedIn(owner, long, 1)).toEqual((expected(answer) ?? unanswered) as never)
        const cut = new OutcomeSearch()
        cut.add(bytes.subarray(0, -1))
        expect(cut.stated(1)).toBeUndefined()
      },
    ),
    { numRuns: 2000 },
  )
})

test('a name is read once, however many colons follow it', () => {
  const name = '\\u0061'.repeat(500)
  const odd = '"\\a":'.repeat(400_000)
  for (const text of [
    `{"id":2,"result":{${odd}}}`,
    `{${'"id":"\\a",'.repeat(200_000)}`,
    `{"${name}"${':'.repeat(200_000)}`,
    `{${`"${name}":`.repeat(60)}`,
    `{"id":"${name}"${':'.repeat(200_000)}`,
  ]) {
    const before = process.threadCpuUsage()
    const search = new OutcomeSearch()
    search.add(Buffer.from(text))
    const { user, system } = process.threadCpuUsage(before)
    expect(search.stated(1)).toBeUndefined()
    // Each colon took seven microseconds.
    expect((user + system) / 1000).toBeLessThan(300)
  }
  // What is no string before a colon is no name.
  const search = new OutcomeSearch()
  search.add(Buffer.from('{"jsonrpc":"2.0","id":1,"result" x:{}}'))
  expect(search.stated(1)).toBeUndefined()
})
