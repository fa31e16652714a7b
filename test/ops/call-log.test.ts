/** The record of calls on a disk that is full. */

import { afterAll, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { deletionBytesMin, freeBytesMin } from '../../src/limits.ts'
import type { CallRecord } from '../../src/model/recorded-call.ts'
import { AuditVerifier } from '../../src/ops/audit-verifier.ts'
import { CallLog, callLogCheckMs } from '../../src/ops/call-log.ts'
import { clockOf } from '../support/clock.ts'

const folder = mkdtempSync(join(tmpdir(), 'postern-test-call-log-'))
afterAll(() => rmSync(folder, { recursive: true }))
const linesOf = (path: string) => readFileSync(path, 'utf8').trimEnd().split('\n')

/** Records two calls, and six of which some have no room: the file has 2,048 bytes. */
function recordOnFullDisk(path: string, ...more: string[]): string[][] {
  const script = join(import.meta.dir, 'full-disk.ts')
  // Ignored, so that a write past the limit fails instead of ending the process.
  const limited = ['bash', '-c', 'trap "" XFSZ; ulimit -f 2; exec "$@"', 'bash']
  const child = Bun.spawnSync([...limited, process.execPath, script, path, ...more], { stderr: 'inherit' })
  return JSON.parse(child.stdout.toString())
}

function problemsOf(...paths: string[]): readonly string[] {
  const chain = new AuditVerifier()
  for (const path of paths) for (const line of linesOf(path)) chain.push(line, path)
  return chain.report().problems
}

test('calls that cannot be written whole are not said to be, and the next process goes on after those that are', async () => {
  const path = join(folder, 'calls.jsonl')
  expect(recordOnFullDisk(path)).toEqual([Array(2).fill('fulfilled'), Array(6).fill('rejected')])
  const before = linesOf(path)
  expect(before).toHaveLength(6)
  const log = new CallLog(path, { clock: clockOf(() => 0), onFailure: () => {} })
  // It is the same file: nothing is continued.
  log.reopen()
  const recorded = log.record({ tool: 'last' } as CallRecord)
  log.close()
  await recorded
  expect(JSON.parse(linesOf(path).at(-1) ?? '')).toMatchObject({ event: 'call', tool: 'last', seq: 6 })
  await expect(log.record({ tool: 'late' } as CallRecord)).rejects.toThrow(`${path} is closed`)
  // The line that was cut off is none that was changed.
  expect(problemsOf(path)).toEqual([])
})

test('a file that is moved away then is continued after the calls that are in it', () => {
  const path = join(folder, 'moved.jsonl')
  expect(recordOnFullDisk(path, 'moved').at(-1)).toEqual(['fulfilled'])
  expect(linesOf(path).map((line) => JSON.parse(line).seq)).toEqual([6, 7, 8])
  expect(problemsOf(`${path}.1`, path)).toEqual([])
})

test('one who is refused again and again hides no other caller, and is counted by name', async () => {
  const path = join(folder, 'refused.jsonl')
  const log = new CallLog(path, { clock: clockOf(() => 0), onFailure: () => {} })
  const refused = (keyId: string, tool: string) =>
    log.refused({ userId: keyId, keyId }, async () => ({ tool }) as CallRecord)
  await Promise.all(Array.from({ length: 500 }, () => refused('eve', 'x')))
  await refused('ada', 'delete_everything')
  log.close()
  const lines = linesOf(path).map((line) => JSON.parse(line))
  expect(lines.filter(({ tool }) => tool === 'x')).toHaveLength(100)
  expect(lines.filter(({ tool }) => tool === 'delete_everything')).toHaveLength(1)
  expect(lines.at(-1)).toMatchObject({ event: 'refusals.unwritten', userId: 'eve', count: 400 })
  expect(problemsOf(path)).toEqual([])
})

test('whoever closes it waits for the calls that have begun, and no longer than it says', async () => {
  const log = new CallLog(join(folder, 'closing.jsonl'), { clock: clockOf(() => 0), onFailure: () => {} })
  expect(await log.recorded(60_000)).toBe(0)
  log.begin()
  log.begin()
  let isOver = false
  const all = log.recorded(60_000).finally(() => {
    isOver = true
  })
  log.end()
  await new Promise(setImmediate)
  expect(isOver).toBe(false)
  log.end()
  expect(await all).toBe(0)
  log.begin()
  expect(await log.recorded(1)).toBe(1)
  log.close()
})

test('a chain goes on in the next process after the file was moved away, with or without a call in between', async () => {
  for (const then of ['closes', 'is told to open it again', 'records a call']) {
    const path = join(folder, `${then}.jsonl`)
    const options = { clock: clockOf(() => 0), onFailure: () => {} }
    const first = new CallLog(path, options)
    await first.record({ tool: 'one' } as CallRecord)
    renameSync(path, `${path}.1`)
    if (then === 'is told to open it again') first.reopen()
    if (then === 'records a call') {
      first.reopen()
      await first.record({ tool: 'two' } as CallRecord)
    }
    first.close()
    const next = new CallLog(path, options)
    await next.record({ tool: 'three' } as CallRecord)
    next.close()
    expect(problemsOf(`${path}.1`, path)).toEqual([])
    expect(linesOf(path).map((line) => JSON.parse(line).event)[0]).toBe('log.continued')
  }
})

test('while the record cannot be written no call is begun, and then it says how many lines are missing', async () => {
  const path = join(folder, 'unwritable.jsonl')
  let time = 0
  const log = new CallLog(path, { clock: clockOf(() => time), onFailure: () => {} })
  log.begin()
  await log.record({ tool: 'one' } as CallRecord)
  renameSync(path, `${path}.1`)
  mkdirSync(path)
  // Another file may be there by now: it is looked for.
  time = 1000
  await expect(log.record({ tool: 'two' } as CallRecord)).rejects.toThrow(
    expect.objectContaining({ kind: 'indeterminate' }),
  )
  time = 2000
  expect(() => log.begin()).toThrow(expect.objectContaining({ kind: 'unavailable' }))
  rmSync(path, { recursive: true })
  time = 3000
  log.begin()
  await log.record({ tool: 'three' } as CallRecord)
  log.close()
  expect(linesOf(path).map((line) => JSON.parse(line))).toMatchObject([
    { event: 'log.continued' },
    { event: 'calls.lost', count: 1 },
    { event: 'call', tool: 'three' },
  ])
  expect(problemsOf(`${path}.1`, path)).toEqual([])
})

test('the number of missing lines is written when the record is reopened or closed, too, where it can be', async () => {
  for (const how of ['reopen', 'close'] as const) {
    const path = join(folder, `lost-${how}.jsonl`)
    const failures: unknown[] = []
    let free = freeBytesMin
    const log = new CallLog(path, {
      clock: clockOf(() => 0),
      onFailure: (error) => failures.push(error),
      free: () => free,
    })
    log.begin()
    free = 0
    await expect(log.record({ tool: 'x' } as CallRecord)).rejects.toThrow()
    // It is still full: nothing is written, and nothing forgotten.
    log.reopen()
    expect(readFileSync(path, 'utf8')).toBe('')
    free = freeBytesMin
    log[how]()
    expect(linesOf(path).map((line) => JSON.parse(line))).toMatchObject([{ event: 'calls.lost', count: 1 }])
    expect(failures).toHaveLength(1)
    if (how === 'reopen') log.close()
    expect(linesOf(path)).toHaveLength(1)
  }
})

test('calls that end when the disk is full leave it to revocations, and are counted', async () => {
  const path = join(folder, 'full.jsonl')
  let [now, free] = [0, freeBytesMin]
  const log = new CallLog(path, { clock: clockOf(() => now), onFailure: () => {}, free: () => free })
  log.begin()
  free = deletionBytesMin + 100
  const ended = await Promise.allSettled([1, 2, 3].map(() => log.record({ tool: 'x' } as CallRecord)))
  expect(ended.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
  expect(readFileSync(path, 'utf8')).toBe('')
  now += callLogCheckMs
  free = freeBytesMin
  log.begin()
  log.close()
  expect(linesOf(path).map((line) => JSON.parse(line))).toMatchObject([{ event: 'calls.lost', count: 3 }])
  expect(problemsOf(path)).toEqual([])
})

test('the disk is asked once for many lines, and no more of them are written than it had room for', async () => {
  const path = join(folder, 'looks.jsonl')
  let [free, looks] = [freeBytesMin, 0]
  const look = () => {
    looks += 1
    return free
  }
  const log = new CallLog(path, { clock: clockOf(() => 0), onFailure: () => {}, free: look })
  const record = () => log.record({ tool: 'x' } as CallRecord)
  for (let calls = 0; calls < 20; calls += 1) await record()
  expect(looks).toBe(1)
  const line = statSync(path).size / 20
  // Of somebody else: postern does not see it before it looks again.
  free = 0
  let written = 20
  while (
    await record().then(
      () => true,
      () => false,
    )
  )
    written += 1
  expect(written * line).toBeWithin(200 * 1024, 300 * 1024)
  log.close()
})

test('no call is made while the disk has room for revocations only', () => {
  const path = join(folder, 'reserve.jsonl')
  let [now, free] = [0, freeBytesMin]
  const log = new CallLog(path, {
    clock: clockOf(() => now),
    onFailure: () => {},
    free: () => free,
  })
  log.begin()
  free -= 1
  // Looked at so often, and no more.
  now += callLogCheckMs - 1
  log.begin()
  now += 1
  for (let i = 0; i < 3; i += 1) expect(() => log.begin()).toThrow(expect.objectContaining({ kind: 'unavailable' }))
  free += 1
  log.begin()
  log.close()
})
