/**
 * A load of very many connections that is killed while it reads and while it writes, and is then done whole. `make test`
 * loads fewer, and kills no load: every step of one is cut off in the tests of the seed.
 */

import { join } from 'node:path'
import { writeFixtures } from '../bench/data.ts'
import { memoryMost } from '../bench/measure.ts'
import { executable, run, startServer, workplace } from '../support/executable.ts'
import { collector, type Trial } from './trial.ts'

const many = 210_000
const memoryMaxMegabytes = 700
const stages = ['"stage":"reading fixtures"', '"stage":"loading fixtures"']

export const veryMany: Trial = {
  name: 'very-many',
  promise: `A load of ${many} connections that is killed leaves nothing, and takes no more than ${memoryMaxMegabytes} MB`,
  times: { full: 1, short: 0 },
  isTimed: true,

  async run(times) {
    const { broken, expect } = collector()
    let kills = 0
    let memory = 0
    for (let round = 0; round < times; round += 1) {
      using place = workplace()
      const fixtures = join(place.folder, 'fixtures')
      writeFixtures(fixtures, many)
      const flags = ['--fixtures', fixtures]
      for (const stage of stages) {
        const child = Bun.spawn([executable, 'serve', ...flags, '--port', '0', '--data', place.data], {
          stdout: 'ignore',
          stderr: 'pipe',
        })
        let logged = ''
        for await (const chunk of child.stderr) {
          logged += Buffer.from(chunk).toString()
          if (logged.includes(stage)) child.kill('SIGKILL')
        }
        if ((await child.exited) === 137) kills += 1
        const { code, stdout } = await run(place, ['verify', '--data', place.data])
        // The signing keys and, of the second, the note.
        expect(code === 0 && /^[123] records and 0 index entries/.test(stdout), () => `${stage}: ${stdout}`)
      }
      await using server = await startServer(place, flags)
      memory = Math.max(memory, memoryMost(server.pid))
      expect(memory < memoryMaxMegabytes, () => `${memory.toFixed(0)} MB`)
    }
    const figure = `${kills} loads killed, ${memory.toFixed(0)} MB at the most`
    return { figure, broken, seen: { kills: [kills, times * stages.length] } }
  },
}
