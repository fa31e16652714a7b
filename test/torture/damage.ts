/**
 * Bytes of the store's file changed by chance, as a failing disk would. Whatever is read afterwards must be what was
 * written, or an error; where something is gone without one, `postern store verify` must tell.
 */

import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openLmdbStore } from '../../src/storage/lmdb/store.ts'
import { run, startServer, workplace } from '../support/executable.ts'
import { random } from '../support/random.ts'
import { collector, type Trial } from './trial.ts'

export const damage: Trial = {
  name: 'damage',
  promise:
    'From a damaged file of the store, postern reads the data that was written or reports an error, and never reads other data',
  times: { full: 1000, short: 12 },

  async run(times, seed) {
    const { broken, expect } = collector()
    const chance = random(seed)
    using place = workplace()
    await (await startServer(place)).kill('SIGTERM')
    const whole = readFileSync(join(place.data, 'store', 'data.mdb'))
    const store = openLmdbStore(join(place.data, 'store'))
    const { entries } = await store.range({ gte: Buffer.of(0), lt: Buffer.of(0xff), limit: 1_000_000 })
    await store.close()
    const written = join(place.folder, 'written.json')
    writeFileSync(written, JSON.stringify(entries.map(({ key, value }) => [hex(key), String(Bun.hash(value))])))

    const seen = { harmless: 0, errors: 0, gone: 0, refused: 0 }
    for (let i = 0; i < times; i += 1) {
      const copy = join(place.folder, 'damaged')
      rmSync(copy, { recursive: true, force: true })
      cpSync(place.data, copy, { recursive: true })
      const bytes = Buffer.from(whole)
      const changed = Array.from({ length: 1 + chance.int(4) }, () => chance.int(bytes.length))
      for (const at of changed) bytes[at] = chance.int(256)
      writeFileSync(join(copy, 'store', 'data.mdb'), bytes)
      const reader = Bun.spawn(
        [process.execPath, join(import.meta.dir, 'damage-reader.ts'), join(copy, 'store'), written],
        {
          stdout: 'pipe',
          stderr: 'ignore',
        },
      )
      const stdout = await new Response(reader.stdout).text()
      if ((await reader.exited) !== 0) {
        seen.refused += 1
        continue
      }
      const { wrong, gone, errors } = JSON.parse(stdout) as { wrong: number; gone: number; errors: number }
      const about = () => `flip ${i} at ${changed.map((at) => `page ${at >> 12} + ${at & 4095}`).join(', ')}`
      expect(wrong === 0, () => `${about()}: ${wrong} values are not what was written`)
      if (gone > 0) {
        const { code } = await run(place, ['verify', '--data', copy])
        expect(code !== 0, () => `${about()}: ${gone} values are gone, and verify does not tell`)
        seen.gone += 1
      } else if (errors > 0) seen.errors += 1
      else seen.harmless += 1
    }
    const figure = `${times} damaged files: ${seen.refused} could not be opened or read to the end, ${seen.errors} were read with errors, ${seen.gone} lacked values and \`store verify\` reported it, and ${seen.harmless} were damaged only in unused bytes`
    const noticed = seen.refused + seen.errors + seen.gone
    return { figure, broken, seen: { 'files that were not read whole': [noticed, 1] } }
  },
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex')
}
