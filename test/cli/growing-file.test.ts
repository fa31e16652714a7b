/** A file that grows while it is read, and is moved away. */

import { afterAll, beforeEach, expect, test } from 'bun:test'
import { appendFileSync, mkdtempSync, renameSync, rmSync, truncateSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { followLines } from '../../src/cli/growing-file.ts'

const folder = mkdtempSync(join(tmpdir(), 'postern-test-lines-'))
afterAll(() => rmSync(folder, { recursive: true }))
const path = join(folder, 'calls.jsonl')

const over = new Error('there is no other step')
/** What is read if one of these steps is taken whenever there is nothing new. */
async function readDuring(...steps: (() => void)[]): Promise<string[]> {
  const lines: string[] = []
  const pause = async () => {
    const step = steps.shift()
    if (step === undefined) throw over
    step()
    return true
  }
  try {
    for await (const some of followLines(path, pause)) lines.push(...some)
  } catch (error) {
    if (error !== over) throw error
  }
  return lines
}
const write = (text: string, to = path) => appendFileSync(to, text)
beforeEach(() => rmSync(path, { force: true }))

test('the lines so far are read, and not one that has no end', async () => {
  write('one\ntwä\nthr')
  const lines: string[] = []
  for await (const some of followLines(path)) lines.push(...some)
  expect(lines).toEqual(['one', 'twä'])
})

test('lines to come are read, in whatever pieces', async () => {
  expect(
    await readDuring(
      () => {},
      () => write('on'),
      () => write('e\ntwo\n'),
      () => write('three\n'),
    ),
  ).toEqual(['one', 'two', 'three'])
})

test('no line is lost when the file is moved away, with or without a new one in its place', async () => {
  const old = `${path}.1`
  for (const create of [() => {}, () => write('')]) {
    rmSync(path, { force: true })
    write('one\n')
    expect(
      await readDuring(
        () => {
          renameSync(path, old)
          create()
          write('two\n', old)
        },
        () => write('three\n', old),
        () => {
          write('four\n', old)
          write('five\n')
        },
        () => write('six\n'),
      ),
    ).toEqual(['one', 'two', 'three', 'four', 'five', 'six'])
  }
})

test('a file that is emptied is read from its beginning', async () => {
  write('one\ntwo\n')
  expect(
    await readDuring(() => {
      truncateSync(path, 0)
      write('three\n')
    }),
  ).toEqual(['one', 'two', 'three'])
})
