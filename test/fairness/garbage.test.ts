import { expect, test } from 'bun:test'
import { readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createGarbageCheck, garbageBytesMax, garbageUrgentBytes } from '../../src/fairness/garbage.ts'
import { workplace } from '../support/workplace.ts'

test('garbage is collected past a bound, again as it grows, and urgently past another', () => {
  let memory = 1000
  let collected = ''
  const look = createGarbageCheck(
    () => memory,
    (isUrgent) => {
      collected += isUrgent ? 'urgently ' : 'beside '
    },
  )
  const after = (bytes: number) => {
    memory = bytes
    collected = ''
    look()
    return collected
  }
  expect(after(1000)).toBe('')
  expect(after(1000 + garbageBytesMax)).toBe('')
  expect(after(1001 + garbageBytesMax)).toBe('beside ')
  // What is in use is no reason to collect at every look.
  expect(after(1001 + garbageBytesMax)).toBe('')
  expect(after(1002 + 1.25 * garbageBytesMax)).toBe('beside ')
  expect(after(1000 + garbageUrgentBytes)).toBe('beside ')
  expect(after(1001 + garbageUrgentBytes)).toBe('urgently ')
  // What is in use then is no garbage: nothing stops again before half as much has come to it, or all of one owner's.
  expect(after(500 + garbageUrgentBytes)).toBe('')
  expect(after(500 + garbageUrgentBytes + garbageBytesMax)).not.toContain('urgently')
  expect(after(501 + garbageUrgentBytes + garbageBytesMax)).toBe('urgently ')
  // Of what is in use past the memory of one owner, a quarter comes first.
  expect(after(900 * 2 ** 20)).toBe('')
  expect(after(1125 * 2 ** 20)).not.toContain('urgently')
  expect(after(1126 * 2 ** 20)).toBe('urgently ')
  expect(after(400)).toBe('')
  expect(after(401 + garbageBytesMax)).toBe('beside ')
})

/** Bytes. The whole size of the process would not do: it gives memory back meanwhile. */
function pagesOfFiles(): number {
  return Number(/^RssFile:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'latin1'))?.[1]) * 1024
}

test.if(process.platform === 'linux')('pages of a file that was read are no garbage', () => {
  using place = workplace()
  const file = join(place.folder, 'store')
  writeFileSync(file, '')
  truncateSync(file, 1.5 * garbageBytesMax)
  let collected = 0
  const look = createGarbageCheck(undefined, () => {
    collected += 1
  })
  look()
  const before = pagesOfFiles()
  const pages = Bun.mmap(file)
  let read = 0
  for (let at = 0; at < pages.length; at += 4096) read += pages[at] ?? 1
  expect(read).toBe(0)
  expect(pagesOfFiles() - before).toBeGreaterThan(garbageBytesMax)
  look()
  expect(collected).toBe(0)
})

test('memory that cannot be read is looked at again later', () => {
  let collected = 0
  let read = (): number => 1000
  const look = createGarbageCheck(
    () => read(),
    () => {
      collected += 1
    },
  )
  look()
  read = () => {
    throw new Error('no descriptor is left')
  }
  look()
  read = () => 1001 + garbageBytesMax
  look()
  expect(collected).toBe(1)
})
