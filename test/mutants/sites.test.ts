/** What `make mutants` changes, and what it leaves alone. */

import { expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { mutantsOf, sample } from './sites.ts'

async function changesOf(text: string): Promise<string[]> {
  const root = mkdtempSync(join(tmpdir(), 'postern-sites-'))
  try {
    writeFileSync(join(root, 'tsconfig.json'), '{"compilerOptions":{"noLib":true},"include":["src"]}')
    mkdirSync(join(root, 'src'))
    writeFileSync(join(root, 'src/a.ts'), text)
    return (await mutantsOf(root, ['src/a.ts'])).map(({ after }) => after)
  } finally {
    rmSync(root, { recursive: true })
  }
}

const rows: readonly (readonly [what: string, text: string, changes: readonly string[]])[] = [
  ['an equality', 'x = a === b', ['x = a !== b']],
  ['an order, at its edge and turned around', 'x = a < b', ['x = a <= b', 'x = a >= b']],
  ['and, or', 'x = a && b || c', ['x = a && b && c', 'x = a || b || c']],
  ['a sum of numbers, not of texts', "x = a - b; y = a + 'b'", ["x = a + b; y = a + 'b'"]],
  ['a step', 'i++; j += 1', ['i--; j += 1', 'i++; j -= 1']],
  ['a condition', 'if (a) b', ['if (!(a)) b']],
  ['a negated condition', 'if (!a) b', ['if (a) b']],
  ['a truth', 'x = true', ['x = false']],
  ['a number within a function', 'const n = 5; const f = () => 5', ['const n = 5; const f = () => 6']],
  ['a thrown error', 'throw a', ['{}']],
  ['a statement within a function', 'a(); function f() { b() }', ['a(); function f() { {} }']],
  ['a returned value', 'function f() { return a }', ['function f() { return }']],
  ['no types', 'type A = true | 5; const a = b as { c: true }', []],
  ['no imports', "import a from 'true && 5'", []],
  ['no texts and no comments', "x = 'a && b' // true\n/* a === b */", []],
]
for (const [what, text, changes] of rows) test(what, async () => expect(await changesOf(text)).toEqual([...changes]))

test('a sample is the same for the same seed, has some of all, and changes little with the whole', () => {
  const all = Array.from({ length: 1000 }, (_, index) => `one ${index}`)
  const taken = sample(all, 100, 1, String)
  expect(taken).toHaveLength(100)
  expect(sample(all, 100, 1, String)).toEqual(taken)
  expect(sample(all, 100, 2, String)).not.toEqual(taken)
  expect(new Set(taken.map((one) => Math.floor(Number(one.slice(4)) / 100))).size).toBe(10)
  expect(sample(all.slice(1), 100, 1, String).filter((one) => taken.includes(one)).length).toBeGreaterThan(98)
  expect(sample(all, 5000, 1, String)).toEqual(all)
})
