import { describe, expect, test } from 'bun:test'
import { appendFileSync, readFileSync, statSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { openAuditLog } from '../../src/audit/audit-log.ts'
import { chainVerifier, firstHash } from '../../src/audit/chain.ts'
import { auditRefusalsPerSecond } from '../../src/limits.ts'
import { workplace } from '../support/executable.ts'

const now = () => new Date('2026-03-02T09:00:00.000Z')
const open = (folder: string, clock = now) => openAuditLog(folder, { now: clock, onFailure: () => {} })
const linesOf = (folder: string) => readFileSync(join(folder, 'audit.jsonl'), 'utf8').split('\n').slice(0, -1)
function verify(lines: readonly string[]) {
  const chain = chainVerifier()
  for (const line of lines) chain.take(line)
  return chain.report()
}

async function logOf(folder: string, count: number): Promise<string[]> {
  const audit = open(folder)
  await Promise.all(Array.from({ length: count }, (_, i) => audit.record('thing.happened', { number: i })))
  audit.close()
  return linesOf(folder)
}

describe('the audit log', () => {
  test('is linked lines of JSON that only the owner can read', async () => {
    using place = workplace()
    const lines = await logOf(place.folder, 3)
    const entries = lines.map((line) => JSON.parse(line))
    expect(entries.map(({ seq, time, event, number }) => ({ seq, time, event, number }))).toEqual(
      [0, 1, 2].map((number) => ({ seq: number + 1, time: now().toISOString(), event: 'thing.happened', number })),
    )
    expect(entries.map(({ prev }) => prev)).toEqual([firstHash, entries[0].hash, entries[1].hash])
    expect(verify(lines)).toEqual({ entries: 3, lastHash: entries[2].hash, problems: [], torn: [] })
    expect(statSync(join(place.folder, 'audit.jsonl')).mode & 0o777).toBe(0o600)
  })

  test('shows every line that was changed, taken out, put in or moved', async () => {
    using place = workplace()
    const lines = await logOf(place.folder, 8)
    for (let at = 0; at < lines.length - 1; at += 1) {
      const line = lines[at] as string
      const changed = lines.with(at, line.replace('"number":', '"number":1'))
      const swapped = lines.with(at, lines[at + 1] as string).with(at + 1, line)
      const [forged] = await (async () => {
        using other = workplace()
        return await logOf(other.folder, 1)
      })()
      for (const [what, bad] of Object.entries({
        changed,
        swapped,
        gone: lines.toSpliced(at, 1),
        twice: lines.toSpliced(at, 0, line),
        forged: lines.toSpliced(at + 1, 0, forged as string),
        garbage: lines.toSpliced(at, 0, 'garbage', 'garbage'),
      })) {
        expect({ at, what, problems: verify(bad).problems.length > 0 }).toEqual({ at, what, problems: true })
      }
    }
  })

  test('goes on after a line that a crash cut short, and says which', async () => {
    using place = workplace()
    await logOf(place.folder, 3)
    const file = join(place.folder, 'audit.jsonl')
    appendFileSync(file, '{"seq":4,"time":"2026-0')
    expect(verify(readFileSync(file, 'utf8').split('\n'))).toMatchObject({ entries: 3, problems: [], torn: [4] })
    const lines = await logOf(place.folder, 2)
    expect(verify(lines)).toMatchObject({ entries: 5, problems: [], torn: [4] })
    // One that lost its line break only is whole.
    truncateSync(file, statSync(file).size - 1)
    expect(verify(await logOf(place.folder, 1))).toMatchObject({ entries: 6, problems: [] })
  })

  test('is written by two at once, one line after the other', async () => {
    using place = workplace()
    const logs = [open(place.folder), open(place.folder)]
    for (let i = 0; i < 50; i += 1) await Promise.all(logs.map((log) => log.record('thing.happened', { i })))
    for (const log of logs) log.close()
    expect(verify(linesOf(place.folder))).toMatchObject({ entries: 100, problems: [], torn: [] })
  })

  test('a flood of refusals becomes a number', async () => {
    using place = workplace()
    let time = now().getTime()
    const audit = open(place.folder, () => new Date(time))
    for (let i = 0; i < auditRefusalsPerSecond + 1000; i += 1) audit.note('access.refused', { i })
    time += 1000
    audit.note('access.refused', { i: 'later' })
    audit.close()
    const entries = linesOf(place.folder).map((line) => JSON.parse(line))
    expect(entries.length).toBe(auditRefusalsPerSecond + 2)
    expect(entries.at(-2)).toMatchObject({ event: 'refusals.unwritten', count: 1000 })
  })
})

test('what others wrote stands in it escaped: nothing that a viewer would act on, and lines that still verify', async () => {
  using place = workplace()
  const hostile = '\u0007\u009b31m\u2028\u2029\u202e\u2066\n"\\'
  const audit = open(place.folder)
  for (const character of hostile) await audit.record('thing.happened', { name: `a${character}b` })
  audit.close()
  const lines = linesOf(place.folder)
  expect(lines.map((line) => JSON.parse(line).name)).toEqual([...hostile].map((character) => `a${character}b`))
  expect(lines.join('')).toMatch(/^[\x20-\x7e]*$/)
  expect(verify(lines)).toMatchObject({ entries: hostile.length, problems: [] })
})
