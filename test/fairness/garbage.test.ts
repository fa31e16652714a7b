import { expect, test } from 'bun:test'
import { createGarbageCheck } from '../../src/fairness/garbage.ts'
import { garbageBytesMax } from '../../src/limits.ts'

test('memory is given back once it grew past its bound since the least, and again after as much more', () => {
  let memory = 1000
  let shrunk = 0
  const look = createGarbageCheck(
    () => memory,
    () => {
      shrunk += 1
    },
  )
  const check = () => {
    look()
    return shrunk
  }
  expect(check()).toBe(0)
  memory += garbageBytesMax
  expect(check()).toBe(0)
  memory += 1
  expect(check()).toBe(1)
  // What is in use is no reason to collect at every check.
  expect(check()).toBe(1)
  memory = 500
  expect(check()).toBe(1)
  memory += garbageBytesMax + 1
  expect(check()).toBe(2)
})

test('memory that cannot be read is looked at again later', () => {
  let shrunk = 0
  let read = (): number => 1000
  const look = createGarbageCheck(
    () => read(),
    () => {
      shrunk += 1
    },
  )
  look()
  read = () => {
    throw new Error('no descriptor is left')
  }
  look()
  read = () => 1001 + garbageBytesMax
  look()
  expect(shrunk).toBe(1)
})
