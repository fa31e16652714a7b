/** While fixtures are loaded, others have their turns. */

import { expect, test } from 'bun:test'
import { eventLoopSliceMs } from '../../../src/limits.ts'
import { patientStore } from '../../../src/maintenance/seed/patient-store.ts'
import { openMemoryStore } from '../../support/memory-store.ts'

test('others have a turn before a read when a slice is over, and not before', async () => {
  const key = Buffer.from('a')
  const memory = openMemoryStore()
  await memory.commit({ puts: [{ key, value: Buffer.from('1') }] })
  let now = 0
  const store = patientStore(memory, { monotonic: () => now })
  let turns = 0
  const look = () => {
    turns += 1
    immediate = setImmediate(look)
  }
  let immediate = setImmediate(look)
  const turnsOf = async (read: () => Promise<unknown>) => {
    turns = 0
    await read()
    return turns
  }
  expect(await turnsOf(() => store.get(key))).toBe(0)
  now += eventLoopSliceMs
  expect(await turnsOf(() => store.get(key))).toBeGreaterThan(0)
  expect(await turnsOf(() => store.getMany([key]))).toBe(0)
  now += eventLoopSliceMs
  expect(await turnsOf(() => store.getMany([key]))).toBeGreaterThan(0)
  clearImmediate(immediate)
})
