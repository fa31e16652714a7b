/** The runtime's undocumented parser is used only as long as it parses as we know it. */

import { expect, test } from 'bun:test'
import { httpParser, testedParser } from '../../src/upstream/http-parser.ts'

const Parser = httpParser()
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
]
for (const [what, module] of changed) {
  test(`a parser that ${what} is refused`, () => {
    expect(() => testedParser(module)).toThrow()
  })
}
