import { expect, test } from 'bun:test'
import { type Place, Spool } from '../../../src/maintenance/seed/spool.ts'
import { workplace } from '../../support/executable.ts'
import { random } from '../../support/random.ts'

test('a spool gives back what it was given, from memory and from a file that nobody sees', () => {
  using place = workplace()
  for (const folder of [undefined, place.folder]) {
    using spool = new Spool(folder)
    const chance = random(9)
    const given: { at: Place; bytes: Buffer }[] = []
    for (let i = 0; i < 3000; i += 1) {
      const length = i % 500 === 0 ? 1_700_000 : 1 + chance.int(20_000)
      const bytes = Buffer.alloc(length, i % 251)
      given.push({ at: spool.add(bytes), bytes })
    }
    const inOrder = given.map((_, i) => i)
    const inDisorder = inOrder.map(() => chance.int(given.length))
    for (const i of [...inOrder, ...inDisorder]) {
      const { at, bytes } = given[i] as (typeof given)[0]
      expect(spool.read(at).equals(bytes)).toBe(true)
    }
    expect([...new Bun.Glob('**').scanSync({ cwd: place.folder, dot: true })]).toEqual([])
  }
})
