/** What a trial has looked at, and what it waits for: a trial that looked at nothing has not held. */

import { expect, test } from 'bun:test'
import { inTurn, tooSeldom } from './trial.ts'

test('a trial that saw too little of something has not held', () => {
  expect(tooSeldom({ calls: [6, 6], 'sign-ins': [1, 0] })).toEqual([])
  expect(tooSeldom({ calls: [5, 6], 'sign-ins': [0, 1] })).toEqual([
    'looked at too little: calls: 5, and at least 6 are needed',
    'looked at too little: sign-ins: 0, and at least 1 are needed',
  ])
})

test('each round waits for one thing in turn, and all rounds together have seen each', async () => {
  const counts = { calls: 7, 'sign-ins': 3 }
  const turns = inTurn({ calls: () => counts.calls, 'sign-ins': () => counts['sign-ins'] })
  const over: number[] = []
  const rounds = [0, 1, 2].map((round) => turns.happens(round).then(() => over.push(round)))
  await Bun.sleep(0)
  expect(over).toEqual([])
  counts['sign-ins'] += 1
  await rounds[1]
  expect(over).toEqual([1])
  counts.calls += 1
  await Promise.all(rounds)
  expect(turns.seen(3)).toEqual({ calls: [8, 2], 'sign-ins': [4, 1] })
  expect(turns.seen(1)).toEqual({ calls: [8, 1], 'sign-ins': [4, 0] })
})
