import { expect, test } from 'bun:test'
import { Spool } from '../../src/maintenance/spool.ts'
import { workplace } from '../support/executable.ts'
import { random } from '../support/random.ts'

test('a spool gives back what it was given, in order, from memory and from a file that nobody sees', () => {
  using place = workplace()
  for (const folder of [undefined, place.folder]) {
    using spool = new Spool(folder)
    const chance = random(9)
    const given = Array.from({ length: 3000 }, (_, i) => ({
      key: Buffer.from(`${chance.int(1_000_000_000)} \0ÿ ${i}`),
      value: Buffer.alloc(i % 500 === 0 ? 1_700_000 : chance.int(20_000), i % 251),
    }))
    for (const { key, value } of given) spool.add(key, value)
    expect(spool.length).toBe(given.length)
    const sorted = given.toSorted((a, b) => Buffer.compare(a.key, b.key))
    // Twice: a load may have to begin again.
    for (let times = 0; times < 2; times += 1) {
      let at = 0
      for (const { key, value } of spool.inOrder()) {
        const wanted = sorted[at] as (typeof given)[0]
        expect([wanted.key.equals(key), wanted.value.equals(value)]).toEqual([true, true])
        at += 1
      }
      expect(at).toBe(given.length)
    }
    expect([...new Bun.Glob('**').scanSync({ cwd: place.folder, dot: true })]).toEqual([])
  }
})
