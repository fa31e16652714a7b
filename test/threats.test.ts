/** The threats that the platform stands against (`threats.json`), each with its control and the tests that show it. */

import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import threats from './threats.json' with { type: 'json' }

test('every threat has a row of its own, numbered within its letter', () => {
  const letters = ['K', 'T', 'L', 'R', 'D', 'F']
  const counts = letters.map((letter) => threats.filter(({ row }) => row.startsWith(letter)).length)
  expect(threats.map(({ row }) => row)).toEqual(
    letters.flatMap((letter, at) => Array.from({ length: counts[at] ?? 0 }, (_, i) => `${letter}${i + 1}`)),
  )
  expect(Math.min(...counts)).toBeGreaterThan(6)
})

for (const { row, threat, tests } of threats) {
  test(`${row} ${threat}: its tests are there`, () => {
    expect(tests).not.toBeEmpty()
    for (const named of tests) {
      const [file = '', title = ''] = named.split(/: (.*)/)
      const text = readFileSync(join(import.meta.dir, file), 'utf8')
      // The cases of the API are files beside their test.
      const isThere =
        file === 'api/cases.test.ts'
          ? readFileSync(join(import.meta.dir, 'api', title)).length > 0
          : text.includes(title.replaceAll("'", "\\'")) || text.includes(title)
      expect({ named, isThere }).toEqual({ named, isThere: true })
    }
  })
}
