/** `postern audit verify`: what it vouches for, and what not. */

import { expect, test } from 'bun:test'
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { verifyAudit } from '../../src/cli/audit.ts'
import { formatLine } from '../../src/ops/audit-chain.ts'
import { openAuditLog } from '../../src/ops/audit-log.ts'
import { clockOf } from '../support/clock.ts'
import { type Workplace, workplace } from '../support/workplace.ts'

async function logIn({ folder }: Workplace, entries: number, replica?: string): Promise<string> {
  const audit = openAuditLog(folder, { clock: clockOf(() => 0), ...(replica && { replica }), onFailure: () => {} })
  for (let i = 0; i < entries; i += 1) await audit.record('view.changed', { i })
  audit.close()
  return join(folder, 'audit.jsonl')
}
const hashesIn = (file: string) =>
  [...readFileSync(file, 'utf8').matchAll(/"hash":"(\w+)"/g)].map(([, hash = '']) => hash)

/** What the command writes; rejects as it does. */
async function verify(files: string[], hash?: string, data = '/nowhere') {
  const written = { stdout: '', stderr: '' }
  const to = (stream: keyof typeof written) => (text: string) => {
    written[stream] += text
  }
  const terminal = { stdout: to('stdout'), stderr: to('stderr'), isStdoutClosed: () => false }
  await verifyAudit({ data, ...(hash !== undefined && { hash }) }, terminal, files)
  return written
}

test('one entry is one', async () => {
  using place = workplace()
  const file = await logIn(place, 1)
  const [hash] = hashesIn(file)
  expect(await verify([file])).toEqual({
    stderr: '',
    stdout: `1 entry, none changed, none missing between them. The last has the hash\n${hash}\nKeep this hash elsewhere: given to --hash later, it shows whether the log was cut off before this entry.\n`,
  })
})

test('the logs of two replicas are checked together, each with its own hash', async () => {
  using place = workplace()
  using other = workplace()
  const files = [await logIn(place, 3, 'r1'), await logIn(other, 2, 'r2')]
  const { stdout, stderr } = await verify(files)
  expect(stderr).toBe('')
  for (const [name, file] of [
    ['r1: 3 entries', files[0]],
    ['r2: 2 entries', files[1]],
  ] as const)
    expect(stdout).toContain(
      `${name}, none changed, none missing between them. The last has the hash\n${hashesIn(file ?? '').at(-1)}\n`,
    )
  expect((await verify(files, hashesIn(files[1] ?? '')[0])).stdout).toBe(stdout)
})

test('after a rotation, the hash of the last entry of the older file is found in the first line of the next', async () => {
  using place = workplace()
  const file = await logIn(place, 13)
  const lines = readFileSync(file, 'utf8').split('\n')
  const hashes = lines.flatMap((line) => /"hash":"(\w+)"/.exec(line)?.[1] ?? [])
  writeFileSync(file, lines.slice(5).join('\n'))
  expect((await verify([file], hashes[4])).stdout).toContain('none missing between them')
  await expect(verify([file], hashes[3])).rejects.toThrow('or an older file has it')
})

test('a hash that somebody put into a line further on vouches for nothing', async () => {
  using place = workplace()
  const file = await logIn(place, 21)
  const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1)
  const kept = hashesIn(file).at(-1) as string
  const { text } = formatLine({ seq: 22, prev: kept, replica: 'web1' }, '2026-11-30T00:00:00.000Z', {
    event: 'view.changed',
    fields: {},
  })
  writeFileSync(file, `${lines.slice(0, 2).join('\n')}\n${text}`)
  await expect(verify([file], kept)).rejects.toThrow('the log was truncated or rewritten')
  await expect(verify([], undefined, place.folder)).rejects.toThrow('entries 3 to 21 are missing')
})

test('the lines of a data folder are one chain, under whatever names they were written', async () => {
  using place = workplace()
  const file = await logIn(place, 9)
  await logIn(place, 9, 'host1:8787')
  await logIn(place, 9, 'host2:8787')
  const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1)
  expect((await verify([], undefined, place.folder)).stdout).toContain('27 entries, none changed')
  for (const [from, to] of [
    [8, 10],
    [9, 18],
    [12, 18],
    [17, 19],
  ] as const) {
    writeFileSync(file, lines.toSpliced(from, to - from).join('\n'))
    await expect(verify([], hashesIn(file).at(-1), place.folder)).rejects.toThrow(`entries ${from + 1} to ${to} are`)
  }
})

test('a log that was cut is not vouched for, unless it has the entry that was kept', async () => {
  using place = workplace()
  const file = await logIn(place, 13)
  const whole = readFileSync(file, 'utf8')
  const lines = whole.split('\n')
  writeFileSync(file, `${lines[0]}\n${lines[1]?.slice(0, 60)}`)
  const [first, , last] = [...whole.matchAll(/"hash":"(\w+)"/g)].map(([, hash]) => hash)
  const told = `${file}:2: ends in the middle of a line, because of a crash, or because somebody cut the log. Later entries may be missing`
  await expect(verify([file])).rejects.toThrow(expect.objectContaining({ message: told, exitCode: 1 }))
  await expect(verify([file], last)).rejects.toThrow('the log was truncated or rewritten, or an older file has it')
  await expect(verify([file], last?.slice(1))).rejects.toThrow('must be 64 hexadecimal digits')
  const { stderr, stdout } = await verify([file], first)
  expect(stderr).toBe(`${told}\n`)
  expect(stdout).toStartWith('1 entry, none changed')
  // Of two logs, the hash vouches for its own.
  using other = workplace()
  const second = await logIn(other, 1, 'r2')
  appendFileSync(second, '{"seq":2,')
  await expect(verify([file, second], first)).rejects.toThrow(`${second}:2: ends in the middle of a line`)
})

test('a line that a crash cut, and that the log went on after, is told and no more', async () => {
  using place = workplace()
  const file = await logIn(place, 1)
  appendFileSync(file, '{"seq":2,')
  await logIn(place, 1)
  expect(await verify([file])).toMatchObject({
    stderr: `${file}:2: a crash cut this line off; no entry is missing after it\n`,
    stdout: expect.stringMatching(/^2 entries, none changed/),
  })
})

test('a log whose only line was cut is none', async () => {
  using place = workplace()
  const file = join(place.folder, 'audit.jsonl')
  writeFileSync(file, '{"seq":1,"time"')
  await expect(verify([file])).rejects.toThrow('is not an audit log: no line is a valid entry')
})
