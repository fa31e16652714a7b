/** The one timer of all timeouts, by a clock that the test moves. */

import { afterEach, beforeEach, expect, jest, test } from 'bun:test'
import { DeadlineClock, deadlineTickMs } from '../../src/upstream/deadline-clock.ts'

beforeEach(() => void jest.useFakeTimers())
afterEach(() => void jest.useRealTimers())

test('all that is watched is looked at in every tick, with one timer', () => {
  const clock = new DeadlineClock()
  const seen: string[] = []
  expect(jest.getTimerCount()).toBe(0)
  const first = { look: (now: number) => void seen.push(`first ${now}`) }
  clock.watch(first)
  jest.advanceTimersByTime(deadlineTickMs - 1)
  clock.watch({ look: (now) => void seen.push(`second ${now}`) })
  expect([seen, jest.getTimerCount()]).toEqual([[], 1])
  jest.advanceTimersByTime(1)
  expect(seen).toEqual([`first ${deadlineTickMs}`, `second ${deadlineTickMs}`])
  expect(jest.getTimerCount()).toBe(1)
  clock.end(first)
  jest.advanceTimersByTime(2 * deadlineTickMs)
  expect(seen.slice(2)).toEqual([`second ${2 * deadlineTickMs}`, `second ${3 * deadlineTickMs}`])
})

test('nothing ticks while nothing is watched, and what is watched later is looked at again', () => {
  const clock = new DeadlineClock()
  const seen: number[] = []
  const gone = { look: (now: number) => void seen.push(now) }
  clock.watch(gone)
  clock.end(gone)
  jest.advanceTimersByTime(deadlineTickMs)
  expect([seen, jest.getTimerCount()]).toEqual([[], 0])
  const once = {
    look(now: number) {
      seen.push(now)
      clock.end(once)
    },
  }
  clock.watch(once)
  expect(jest.getTimerCount()).toBe(1)
  jest.advanceTimersByTime(5 * deadlineTickMs)
  expect([seen, jest.getTimerCount()]).toEqual([[2 * deadlineTickMs], 0])
})
