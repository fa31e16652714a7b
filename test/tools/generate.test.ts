import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { generated } from '../../src/tools/generate.ts'

for (const [file, write] of generated) {
  test(`${file} is what the source makes of it (make generated)`, () => {
    expect(readFileSync(resolve(import.meta.dir, '../..', file), 'utf8')).toBe(write())
  })
}
