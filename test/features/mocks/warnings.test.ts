import { expect, test } from 'bun:test'
import { lintMocks } from '../../../src/features/mocks/warnings.ts'
import { readFixtures } from '../../../src/maintenance/seed/read-fixtures.ts'
import { sampleSources } from '../../../src/maintenance/seed/sample.ts'
import type { RecordedAnswer } from '../../../src/model/recorded-answer.ts'
import type { ServerDetail } from '../../../src/model/server.ts'

const server = (tools: object[]) => [{ qualifiedName: 'n/s', tools }] as unknown as ServerDetail[]
const plain = { type: 'object' }
const counting = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] }
const answered = (result: object) => [{ server: 'n/s', tool: 't', result: result as Record<string, unknown> }]
const adviceOn = (servers: readonly ServerDetail[], mocks: readonly RecordedAnswer[]) => {
  const placed = (kind: string, list: readonly object[]) =>
    list.map((one, index): [object, string] => [one, `a.json: ${kind}[${index}]`])
  return lintMocks({ servers, mocks, places: new Map([...placed('servers', servers), ...placed('mocks', mocks)]) })
}
const text = [{ type: 'text', text: 'x' }]

const rows: [what: string, tool: object, result: object | undefined, advice: string | undefined][] = [
  [
    'nothing wrong',
    { inputSchema: plain, outputSchema: counting },
    { content: text, structuredContent: { n: 1 } },
    undefined,
  ],
  [
    'an answer that is an error',
    { inputSchema: plain, outputSchema: counting },
    { content: text, isError: true },
    undefined,
  ],
  ['no output schema', { inputSchema: plain }, { content: text }, undefined],
  [
    'a bound that is no number',
    { inputSchema: { type: 'object', minProperties: 'a' } },
    undefined,
    'tools[0].inputSchema (n/s/t): cannot be used: ',
  ],
  [
    'a type that is none',
    { inputSchema: { type: 'object', properties: { a: { type: 'strng' } } } },
    undefined,
    'a.json: servers[0].tools[0].inputSchema (n/s/t): cannot be used: schema.properties.a.type must be one of null, boolean, string, number,',
  ],
  [
    'a reference elsewhere',
    { inputSchema: { type: 'object', $ref: 'https://example.com/x' } },
    undefined,
    'tools[0].inputSchema (n/s/t): cannot be used: ',
  ],
  [
    'look-around',
    { inputSchema: plain, outputSchema: { type: 'object', properties: { a: { pattern: '(?=a)' } } } },
    undefined,
    'RE2 does not know the pattern (?=a)',
  ],
  [
    'a result that does not fit',
    { inputSchema: plain, outputSchema: counting },
    { structuredContent: { n: 'x' } },
    'a.json: mocks[0].result.structuredContent (n/s/t): does not fit the outputSchema: result.n must be integer',
  ],
  [
    'no structured result',
    { inputSchema: plain, outputSchema: counting },
    { content: text },
    'has no structuredContent',
  ],
  ['no content at all', { inputSchema: plain }, { hello: 1 }, 'has neither content nor structuredContent'],
  [
    'content of a kind of its own',
    { inputSchema: plain },
    { content: [{ type: 'txt' }] },
    'mocks[0].result.content[0] (n/s/t): is content of type "txt"',
  ],
  [
    'content that lacks what its kind has',
    { inputSchema: plain },
    { content: [...text, { type: 'text', text: 5 }] },
    'mocks[0].result.content[1] (n/s/t): does not fit MCP’s schema of a result',
  ],
]
for (const [what, tool, result, advice] of rows) {
  test(what, () => {
    const given = adviceOn(server([{ name: 't', ...tool }]), result === undefined ? [] : answered(result))
    const found = given.map(({ line }) => line)
    expect(given.every(({ isWrong }) => isWrong)).toBe(what !== 'look-around')
    if (advice === undefined) expect(found).toEqual([])
    else expect(found).toEqual([expect.stringContaining(advice)])
  })
}

test('the sample needs none', async () => {
  const { fixtures } = await readFixtures(sampleSources())
  expect(lintMocks(fixtures)).toEqual([])
})

const closed = {
  type: 'object',
  properties: {
    recipeId: { type: 'string', minLength: 2 },
    unit: { enum: ['g', 'kg'] },
    filter: { type: 'object', properties: { tag: { type: 'string' }, from: { type: 'integer' } }, required: ['from'] },
  },
  required: ['recipeId', 'unit'],
  additionalProperties: false,
}
const oneOf = { type: 'object', oneOf: [{ required: ['a'] }, { required: ['b'] }], properties: { a: {}, b: {} } }

const possible: [what: string, inputSchema: object, wanted: object, why: string | undefined][] = [
  ['a field of another spelling', closed, { recipeID: 'x1' }, 'arguments has an unknown field "recipeID"'],
  ['a value of another type', closed, { recipeId: 5 }, 'arguments.recipeId must be string'],
  ['a value that is too short', closed, { recipeId: 'x' }, 'arguments.recipeId must not have fewer than 2 characters'],
  ['a value that is none of the list', closed, { unit: 'lb' }, 'arguments.unit must be one of ["g","kg"]'],
  ['a part of what a call needs', closed, { unit: 'g' }, undefined],
  ['a part of an object in it', closed, { filter: { tag: 'x' } }, undefined],
  ['what one of several forms needs', oneOf, { a: 1, b: 1 }, undefined],
  [
    'an object that is a part of a constant',
    { properties: { a: { const: { x: 1, y: 1 } } } },
    { a: { x: 1 } },
    undefined,
  ],
  ['any field of an open schema', plain, { recipeID: 'x1' }, undefined],
]
for (const [what, inputSchema, wanted, why] of possible) {
  test(`arguments of a recorded answer: ${what}`, () => {
    const mocks = [
      { server: 'n/s', tool: 't', arguments: wanted as Record<string, unknown>, result: { content: text } },
    ]
    expect(adviceOn(server([{ name: 't', inputSchema }]), mocks)).toEqual(
      why === undefined
        ? []
        : [{ line: `a.json: mocks[0].arguments (n/s/t): no call can have these: ${why}`, isWrong: false }],
    )
  })
}
