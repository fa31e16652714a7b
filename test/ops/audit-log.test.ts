import { describe, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import {
  appendFileSync,
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { timestampOf } from '../../src/clock.ts'
import { auditRefusalsPerCaller, auditRefusalsPerSecond, freeBytesMin } from '../../src/limits.ts'
import { firstHash } from '../../src/ops/audit-chain.ts'
import { openAuditLog } from '../../src/ops/audit-log.ts'
import { AuditVerifier } from '../../src/ops/audit-verifier.ts'
import { auditCallersPerSecond } from '../../src/ops/denial-count.ts'
import { clockOf } from '../support/clock.ts'
import { workplace } from '../support/workplace.ts'

const start = Date.parse('2026-03-02T09:00:00.000Z')
const clock = clockOf(() => start)
const open = (folder: string, at = clock) => openAuditLog(folder, { clock: at, onFailure: () => {} })
const linesOf = (folder: string) => readFileSync(join(folder, 'audit.jsonl'), 'utf8').split('\n').slice(0, -1)
/** The report of one log. */
function verify(lines: readonly string[]) {
  const { logs, ...rest } = verifyFiles(lines)
  expect(logs).toHaveLength(1)
  return { ...logs[0], ...rest }
}
/** Places are `1:1`: the file and the line. Of a single file, the line. */
function verifyFiles(...files: (readonly string[])[]) {
  const verifier = new AuditVerifier()
  for (const [file, lines] of files.entries()) {
    verifier.nextFile()
    const place = files.length === 1 ? '' : `${file + 1}:`
    for (const [index, line] of lines.entries()) verifier.push(line, `${place}${index + 1}`)
  }
  return verifier.report()
}

async function logOf(folder: string, count: number): Promise<string[]> {
  const audit = open(folder)
  await Promise.all(Array.from({ length: count }, (_, i) => audit.record('view.changed', { number: i })))
  audit.close()
  return linesOf(folder)
}

describe('the audit log', () => {
  test('is linked lines of JSON that only the owner can read', async () => {
    using place = workplace()
    const lines = await logOf(place.folder, 3)
    const entries = lines.map((line) => JSON.parse(line))
    expect(entries.map(({ seq, time, event, number }) => ({ seq, time, event, number }))).toEqual(
      [0, 1, 2].map((number) => ({ seq: number + 1, time: timestampOf(clock), event: 'view.changed', number })),
    )
    expect(entries.map(({ prev }) => prev)).toEqual([firstHash, entries[0].hash, entries[1].hash])
    expect(verify(lines)).toMatchObject({
      entries: 3,
      follows: { seq: 0, hash: firstHash },
      last: { seq: 3, hash: entries[2].hash },
      openEnd: undefined,
      problems: [],
      truncatedLines: [],
    })
    expect(statSync(join(place.folder, 'audit.jsonl')).mode & 0o777).toBe(0o600)
    expect(readdirSync(place.folder).sort()).toEqual(['audit.jsonl', 'audit.lock'])
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
        // Without its first lines a log is the later file of a longer one: it says itself what it follows.
        ...(at > 0 && { gone: lines.toSpliced(at, 1) }),
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
    expect(verify(readFileSync(file, 'utf8').split('\n'))).toMatchObject({
      entries: 3,
      problems: [],
      // Nobody knows yet: somebody may have cut it.
      openEnd: '4',
      truncatedLines: [],
    })
    const lines = await logOf(place.folder, 2)
    expect(verify(lines)).toMatchObject({ entries: 5, problems: [], truncatedLines: ['4'] })
    // One that lost its line break only is whole.
    truncateSync(file, statSync(file).size - 1)
    expect(verify(await logOf(place.folder, 1))).toMatchObject({ entries: 6, problems: [] })
  })

  test('is written by two at once, one line after the other', async () => {
    using place = workplace()
    const logs = [open(place.folder), open(place.folder)]
    for (let i = 0; i < 50; i += 1) await Promise.all(logs.map((log) => log.record('view.changed', { i })))
    for (const log of logs) log.close()
    expect(verify(linesOf(place.folder))).toMatchObject({ entries: 100, problems: [], truncatedLines: [] })
  })

  test('goes on in a new file where the old one was moved away, emptied or deleted, whoever writes next', async () => {
    using place = workplace()
    const file = join(place.folder, 'audit.jsonl')
    const logs = [open(place.folder), open(place.folder)] as const
    const written: string[] = []
    const away = {
      moved: () => renameSync(file, `${file}.1`),
      deleted: () => rmSync(file),
      emptied: () => truncateSync(file),
      'moved, and made anew': () => {
        renameSync(file, `${file}.1`)
        writeFileSync(file, '', { mode: 0o600 })
      },
    }
    for (const act of Object.values(away)) {
      for (const log of logs) await log.record('view.changed', {})
      written.push(...linesOf(place.folder))
      act()
    }
    // One that was opened when there was nothing to see.
    const late = open(place.folder)
    await late.record('view.changed', {})
    for (const log of [...logs, late]) log.close()
    written.push(...linesOf(place.folder))
    expect(verify(written)).toMatchObject({ entries: 13, problems: [], truncatedLines: [] })
    // The last file alone says where it begins.
    const { seq, hash } = JSON.parse(written.at(-3) ?? '')
    expect(verify(written.slice(-2))).toMatchObject({ entries: 2, follows: { seq, hash }, problems: [] })
    expect(JSON.parse(written.at(-2) ?? '')).toMatchObject({ event: 'log.continued', time: expect.any(String) })
  })

  test('says how many entries went where its end was cut off, or the copy of it was made too early', async () => {
    using place = workplace()
    await logOf(place.folder, 5)
    const file = join(place.folder, 'audit.jsonl')
    writeFileSync(file, `${linesOf(place.folder).slice(0, 3).join('\n')}\n`)
    expect(verify(await logOf(place.folder, 1)).problems).toEqual([
      '4: does not follow the entry before it: entries 4 to 5 are missing',
    ])
    const other = linesOf(place.folder)
    expect(verify([...other.slice(3), ...other.slice(0, 3)]).problems).toEqual([
      '2: does not follow the entry before it: entry 1 stands after entry 6 (give the oldest file first)',
    ])
  })

  test('lets go of a file that was moved away when it is told to', async () => {
    using place = workplace()
    const file = join(place.folder, 'audit.jsonl')
    const log = open(place.folder)
    await log.record('view.changed', {})
    renameSync(file, `${file}.1`)
    log.reopen()
    expect(readFileSync(file, 'utf8')).toBe('')
    await log.record('view.changed', {})
    log.close()
    expect(verify([...readFileSync(`${file}.1`, 'utf8').trim().split('\n'), ...linesOf(place.folder)])).toMatchObject({
      entries: 3,
      problems: [],
    })
  })

  for (const body of ['{"seq":1,oops', '{"seq":"x","prev":""', '{"seq":1', '{}garbage'] as const) {
    test(`a last line with a right hash that is no entry stops nobody: ${body}`, async () => {
      using place = workplace()
      const line = `${body},"hash":"${createHash('sha256').update(body).digest('hex')}"}`
      writeFileSync(join(place.folder, 'audit.jsonl'), `${line}\n`, { mode: 0o600 })
      const lines = await logOf(place.folder, 1)
      expect(lines.length).toBe(2)
      expect(verify(lines)).toMatchObject({ entries: 1, problems: ['1: was changed, or belongs to another log'] })
    })
  }

  test('is written to no file that others can read', async () => {
    using place = workplace()
    const file = join(place.folder, 'audit.jsonl')
    const log = open(place.folder)
    await log.record('view.changed', {})
    rmSync(file)
    writeFileSync(file, '', { mode: 0o666 })
    chmodSync(file, 0o666)
    await expect(log.record('view.changed', {})).rejects.toThrow('is accessible to other users')
    expect(readFileSync(file, 'utf8')).toBe('')
    log.close()
  })

  test('a lock file that is none is told', () => {
    using place = workplace()
    writeFileSync(join(place.folder, 'audit.lock'), 'x'.repeat(5000))
    expect(() => open(place.folder)).toThrow(/audit\.lock is not the lock of the audit log .*: delete it/)
  })
})

describe('refusals', () => {
  const caller = (name: string) => ({ userId: name, keyId: `key_${name}` })
  const logged = (folder: string) => linesOf(folder).map((line) => JSON.parse(line))

  test('a flood of one caller becomes a number with whose it is, and hides nobody else', async () => {
    using place = workplace()
    let time = start
    const audit = open(
      place.folder,
      clockOf(() => time),
    )
    for (let i = 0; i < 5000; i += 1) {
      audit.recordBestEffort('access.refused', caller('flood'), { i })
      if (i % 1000 === 999) audit.recordBestEffort('access.refused', caller('quiet'), { i })
    }
    time += 1000
    audit.recordBestEffort('access.refused', caller('flood'), { i: 'later' })
    audit.close()
    const entries = logged(place.folder)
    const of = (userId: string, event: string) =>
      entries.filter((entry) => entry.userId === userId && entry.event === event)
    expect(of('quiet', 'access.refused').map(({ i }) => i)).toEqual([999, 1999, 2999, 3999, 4999])
    expect(of('flood', 'access.refused').map(({ i }) => i)).toEqual([
      ...Array.from({ length: auditRefusalsPerCaller }, (_, i) => i),
      'later',
    ])
    expect(of('flood', 'refusals.unwritten')).toMatchObject([
      { keyId: 'key_flood', count: 5000 - auditRefusalsPerCaller },
    ])
    expect(of('quiet', 'refusals.unwritten')).toEqual([])
    expect(verify(linesOf(place.folder)).problems).toEqual([])
  })

  test('of a crowd, the first of each is written, all within a bound, and none goes uncounted', async () => {
    using place = workplace()
    const crowd = auditCallersPerSecond + 300
    const each = 3
    const audit = open(place.folder)
    for (let round = 0; round < each; round += 1) {
      for (let i = 0; i < crowd; i += 1) audit.recordBestEffort('access.refused', caller(`c${i}`), {})
    }
    audit.close()
    const entries = logged(place.folder)
    const refused = entries.filter(({ event }) => event === 'access.refused')
    const unwritten = entries.filter(({ event }) => event === 'refusals.unwritten')
    expect(new Set(refused.map(({ userId }) => userId)).size).toBe(auditCallersPerSecond)
    expect(refused.length).toBe(auditCallersPerSecond + auditRefusalsPerSecond)
    expect(unwritten.length).toBeLessThanOrEqual(auditCallersPerSecond + 1)
    expect(unwritten.filter(({ userId }) => userId === undefined)).toMatchObject([{ count: 300 * each }])
    const counted = unwritten.reduce((sum, { count }) => sum + count, 0)
    expect(refused.length + counted).toBe(crowd * each)
  })

  test('on a disk with room for revocations only, refusals are counted, and what writes a line alone is not begun', () => {
    using place = workplace()
    let [free, time] = [freeBytesMin - 1, start]
    const audit = openAuditLog(place.folder, { clock: clockOf(() => time), onFailure: () => {}, free: () => free })
    expect(() => audit.requireRoom()).toThrow(expect.objectContaining({ kind: 'unavailable' }))
    // All keys of a user are counted together.
    for (let i = 0; i < 50; i += 1)
      audit.recordBestEffort('access.refused', { userId: 'mallory', keyId: `key_${i}` }, { i })
    // A line a second would take what is left.
    for (let second = 0; second < 9; second += 1) {
      time += 1000
      audit.recordBestEffort('access.refused', { userId: 'mallory', keyId: 'key_0' }, {})
    }
    expect(logged(place.folder)).toEqual([])
    time += 1000
    free += 1
    audit.requireRoom()
    audit.recordBestEffort('access.refused', { userId: 'mallory', keyId: 'key_1' }, { i: 'later' })
    audit.close()
    expect(logged(place.folder)).toMatchObject([
      { event: 'refusals.unwritten', userId: 'mallory', count: 59 },
      { event: 'access.refused', i: 'later' },
    ])
  })
})

test('what others wrote stands in it escaped: nothing that a viewer would act on, and lines that still verify', async () => {
  using place = workplace()
  const hostile = '\u0007\u009b31m\u2028\u2029\u202e\u2066\n"\\'
  const audit = open(place.folder)
  for (const character of hostile) await audit.record('view.changed', { name: `a${character}b` })
  audit.close()
  const lines = linesOf(place.folder)
  expect(lines.map((line) => JSON.parse(line).name)).toEqual([...hostile].map((character) => `a${character}b`))
  expect(lines.join('')).toMatch(/^[\x20-\x7e]*$/)
  expect(verify(lines)).toMatchObject({ entries: hostile.length, problems: [] })
})

test('a line without its hash is none that a crash left, wherever it stands', async () => {
  using place = workplace()
  const lines = await logOf(place.folder, 3)
  const forged = '{"seq":3,"time":"2026-03-02T09:00:00.000Z","event":"token.revoked","userId":"mallory"}'
  for (const end of ['', ' ', ' x', '{'])
    for (const at of [1, 2, 3]) expect(verify(lines.toSpliced(at, 0, forged + end)).problems).toHaveLength(1)
  const last = lines.at(-1) ?? ''
  expect(
    verify([...lines.slice(0, -1), last.replace(/,"hash":.*/, '}').replace('"number":2', '"number":3')]).problems,
  ).toHaveLength(1)
  expect(verify([...lines.slice(0, -1), last.slice(0, 60)])).toMatchObject({ openEnd: '3', problems: [] })
})

test('what was done and could not be recorded is written when the log is reopened or closed, too', async () => {
  for (const how of ['reopen', 'close'] as const) {
    using place = workplace()
    const audit = openAuditLog(place.folder, { clock, onFailure: () => {} })
    await audit.record('view.changed', {})
    const path = join(place.folder, 'audit.jsonl')
    rmSync(path)
    mkdirSync(path)
    await expect(audit.recordDone('view.deleted', { what: 'x' })).rejects.toThrow()
    rmSync(path, { recursive: true })
    audit[how]()
    if (how === 'reopen') audit.close()
    expect(linesOf(place.folder).map((line) => JSON.parse(line))).toMatchObject([
      { event: 'log.continued' },
      { event: 'view.deleted', what: 'x' },
      { event: 'log.failed' },
    ])
  }
})

test('what was done and cannot be recorded is not said to be undone, and nothing more is done until it can be', async () => {
  using place = workplace()
  const failures: unknown[] = []
  const audit = openAuditLog(place.folder, { clock, onFailure: (error, line) => void failures.push(line ?? error) })
  await audit.record('view.changed', {})
  audit.requireWritable()
  rmSync(join(place.folder, 'audit.jsonl'))
  mkdirSync(join(place.folder, 'audit.jsonl'))
  await expect(audit.recordDone('view.deleted', { what: 'x' })).rejects.toThrow(
    expect.objectContaining({ kind: 'indeterminate' }),
  )
  expect(failures).toEqual([{ event: 'view.deleted', what: 'x' }])
  expect(() => audit.requireWritable()).toThrow(expect.objectContaining({ kind: 'unavailable' }))
  rmSync(join(place.folder, 'audit.jsonl'), { recursive: true })
  audit.requireWritable()
  await audit.recordDone('view.deleted', { what: 'y' })
  audit.close()
  expect(linesOf(place.folder).map((line) => JSON.parse(line))).toMatchObject([
    { event: 'log.continued' },
    { event: 'view.deleted', what: 'x' },
    { event: 'log.failed' },
    { event: 'view.deleted', what: 'y' },
  ])
})

describe('logs of replicas', () => {
  /** The lines of a folder's log after `count` more of a replica, or of a command, which writes no name. */
  async function more(folder: string, count: number, replica?: string): Promise<string[]> {
    const audit = openAuditLog(folder, { clock, ...(replica && { replica }), onFailure: () => {} })
    for (let i = 0; i < count; i += 1) await audit.record('view.changed', { i })
    audit.close()
    return linesOf(folder)
  }
  const counted = (...files: (readonly string[])[]) => {
    const { logs, problems } = verifyFiles(...files)
    return { logs: logs.map(({ replica, entries }) => [replica, entries]), problems }
  }

  test('are a chain each: in files, or line by line', async () => {
    using place = workplace()
    using other = workplace()
    const one = await more(place.folder, 3, 'r1')
    const two = await more(other.folder, 2, 'r2')
    const both = { logs: [['r1', 3], ['r2', 2]], problems: [] } // biome-ignore format: a table
    expect(counted(one, two)).toEqual(both)
    expect(counted([...one, ...two])).toEqual(both)
    const [a = '', b = '', c = ''] = one
    const [d = '', e = ''] = two
    expect(counted([a, d, b, e, c])).toEqual(both)
    // A later file of one of them.
    expect(counted(two, one.slice(0, 2), one.slice(2)).problems).toEqual([])
    expect(counted(one.slice(2), two, one.slice(0, 2)).problems).toHaveLength(1)
    for (const bad of [
      [a, d, c, e],
      [a, b, c, e, d],
      [a, a, d, e],
      [a, b.replace('"i":1', '"i":2'), c, d, e],
    ])
      expect(counted(bad).problems.length).toBeGreaterThan(0)
  })

  test('have lines of commands in them, and before them', async () => {
    using place = workplace()
    using other = workplace()
    const lines = async ({ folder }: typeof place, replica: string) => {
      await more(folder, 1)
      await more(folder, 2, replica)
      await more(folder, 1)
      await more(folder, 1, replica)
      return more(folder, 1)
    }
    const one = await lines(place, 'r1')
    const two = await lines(other, 'r2')
    expect(counted(one, two)).toEqual({ logs: [['r1', 6], ['r2', 6]], problems: [] }) // biome-ignore format: a table
    // Wherever a line is missing, and whoever wrote the next one.
    for (const at of [1, 2, 3, 4]) {
      const cut = one.toSpliced(at, 1)
      expect({ at, problems: counted(cut, two).problems.length }).toEqual({ at, problems: 1 })
      expect({ at, problems: counted(one.slice(0, at), one.slice(at + 1), two).problems.length }).toEqual({
        at,
        problems: 1,
      })
    }
    const [forged = ''] = two
    expect(counted(one.toSpliced(3, 0, forged)).problems.length).toBeGreaterThan(0)
  })

  test('that end in the middle of a line are told one by one', async () => {
    using place = workplace()
    using other = workplace()
    const one = await more(place.folder, 2, 'r1')
    const two = await more(other.folder, 2, 'r2')
    const cut = '{"seq":3,"time":"2026'
    const { logs, problems, truncatedLines } = verifyFiles([...one, cut], [...two, cut], one.slice(2))
    expect({ problems, truncatedLines }).toEqual({ problems: [], truncatedLines: [] })
    expect(logs.map(({ openEnd }) => openEnd)).toEqual(['1:3', '2:3'])
    const third = (await more(place.folder, 1, 'r1')).slice(2)
    expect(verifyFiles([...one, cut], [...two, cut], third)).toMatchObject({
      logs: [{ openEnd: undefined }, { openEnd: '2:3' }],
      truncatedLines: ['1:3'],
    })
    // Another entry came after it: both it and the cut line are told.
    expect(
      verifyFiles(
        [...one, cut],
        third.map((line) => line.replace('view', 'vine')),
      ).problems,
    ).toHaveLength(2)
  })
})
