/** Which client requests are made with, on a runtime that has the undocumented parser, and on one that has it no more. */

import { expect, test } from 'bun:test'
import { chooseClient } from '../../src/upstream/clients.ts'
import { findParser } from '../../src/upstream/http-parser.ts'
import { openByNode } from '../../src/upstream/node-client.ts'
import { openByParser } from '../../src/upstream/parser-client.ts'

test('the one that is wanted is taken, where the runtime has it', async () => {
  let missing = 0
  const onMissing = () => {
    missing += 1
  }
  expect(await chooseClient('parser', onMissing)).toBe(openByParser)
  expect(await chooseClient('node', onMissing)).toBe(openByNode)
  expect(missing).toBe(0)
  expect(await chooseClient('parser', onMissing, () => undefined)).toBe(openByNode)
  expect(missing).toBe(1)
  // Nobody wanted it.
  expect(await chooseClient('node', onMissing, () => undefined)).toBe(openByNode)
  expect(missing).toBe(1)
})

const Parser = findParser() as NonNullable<ReturnType<typeof findParser>>
const changed: [string, unknown][] = [
  ['is gone', undefined],
  ['has another name', {}],
  ['is a function', { HTTPParser: () => {} }],
  [
    'tells of the head otherwise',
    {
      HTTPParser: class extends Parser {
        override execute(chunk: Buffer) {
          const inner = this[2]
          this[2] = (...[major, minor, headers, ...rest]) => inner?.(major, minor, headers?.toReversed(), ...rest) ?? 0
          return super.execute(chunk)
        }
      },
    },
  ],
  [
    'counts otherwise',
    {
      HTTPParser: class extends Parser {
        override execute(chunk: Buffer) {
          super.execute(chunk)
          return 0
        }
      },
    },
  ],
  [
    'takes two lengths',
    {
      HTTPParser: class extends Parser {
        override execute(chunk: Buffer) {
          const read = super.execute(chunk)
          return read instanceof Error ? chunk.length : read
        }
      },
    },
  ],
  [
    'throws',
    {
      HTTPParser: class {
        constructor() {
          throw new Error()
        }
      },
    },
  ],
]
for (const [what, module] of changed) {
  test(`a parser that ${what} is none`, () => {
    expect(findParser(() => module)).toBeUndefined()
  })
}
