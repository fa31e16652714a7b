/** The record of calls of a server that is killed. */

import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { run, sampleFolder, sendTo, startServer, workplace } from '../support/executable.ts'
import { random } from '../support/random.ts'
import { sampleKeys } from '../support/sample.ts'
import { until } from '../support/until.ts'

test('no call that was answered is missing after kill -9', async () => {
  using place = workplace()
  const chance = random(5)
  const answered = new Set<string>()
  for (let life = 0; life < 5; life += 1) {
    const server = await startServer(place, ['--fixtures', sampleFolder])
    const send = sendTo(server)
    let isOver = false
    const callers = Array.from({ length: 8 }, async (_, caller) => {
      for (let i = 0; !isOver; i += 1) {
        const id = `${life}-${caller}-${i}`
        try {
          const response = await send('/connect/northwind/weather-ada/.tools/list_alerts', {
            method: 'POST',
            headers: { authorization: `Bearer ${sampleKeys.ada}`, 'x-request-id': id },
          })
          await response.text()
          if (response.ok) answered.add(id)
        } catch {
          return
        }
      }
    })
    const before = answered.size
    const wanted = before + 20 + chance.int(200)
    await until(() => answered.size >= wanted)
    await server.kill('SIGKILL')
    isOver = true
    await Promise.all(callers)
  }
  const lines = readFileSync(join(place.data, 'calls.jsonl'), 'utf8').split('\n')
  const recorded = new Set(lines.flatMap((line) => /"requestId":"([\d-]+)"/.exec(line)?.[1] ?? []))
  expect([...answered].filter((id) => !recorded.has(id))).toEqual([])
  expect(answered.size).toBeGreaterThan(100)
  expect((await run(place, ['audit', 'verify', join(place.data, 'calls.jsonl')])).code).toBe(0)
})
