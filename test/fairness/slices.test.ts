import { expect, spyOn, test } from 'bun:test'
import { rateLimited } from '../../src/errors.ts'
import { Slices } from '../../src/fairness/slices.ts'
import { Turns } from '../../src/fairness/turns.ts'
import { eventLoopSliceMs } from '../../src/limits.ts'
import { notedTurns } from '../support/noted-turns.ts'

const [ada, mallory] = ['ada', 'mallory'].map((name) => ({ keyId: name, family: name })) as [Holder, Holder]
type Holder = { keyId: string; family: string }

/** Runs with a clock that stands still unless the test moves it. */
async function withClock(run: (pass: (milliseconds: number) => void) => Promise<void>): Promise<void> {
  let now = performance.now()
  const clock = spyOn(performance, 'now').mockImplementation(() => now)
  try {
    await run((milliseconds) => {
      now += milliseconds
    })
  } finally {
    clock.mockRestore()
  }
}

test('work waits for a turn once its slice is over, and not before', () =>
  withClock(async (pass) => {
    let turns = 0
    const slices = new Slices(
      notedTurns(() => {
        turns += 1
      }),
      ada,
    )
    pass(eventLoopSliceMs - 0.1)
    expect([slices.isOver, turns]).toEqual([false, 0])
    pass(0.1)
    expect(slices.isOver).toBe(true)
    await slices.next()
    expect([slices.isOver, turns]).toEqual([false, 1])
  }))

test('parts that wait together share a slice until it is over, and the rest of them the next', () =>
  withClock(async (pass) => {
    const done: string[] = []
    const slices = new Slices(
      notedTurns(() => void done.push('turn')),
      ada,
    )
    pass(eventLoopSliceMs)
    const part = async (name: string) => {
      while (slices.isOver) await slices.next()
      done.push(name)
      pass(eventLoopSliceMs / 2)
    }
    await Promise.all(['a', 'b', 'c'].map(part))
    expect(done).toEqual(['turn', 'a', 'b', 'turn', 'c'])
  }))

test('the slices of one owner’s requests come in rounds with those of others, one in a turn of the event loop', () =>
  withClock(async (pass) => {
    const turns = new Turns()
    const done: string[] = []
    const request = async (name: string, holder: Holder) => {
      const slices = new Slices(turns, holder)
      for (let slice = 1; slice <= 3; slice += 1) {
        pass(eventLoopSliceMs)
        await slices.next()
        done.push(`${name}${slice}`)
      }
    }
    const running = [request('m', mallory), request('n', mallory), request('o', mallory), request('a', ada)]
    await running[3]
    expect(done.filter((name) => name.startsWith('a'))).toEqual(['a1', 'a2', 'a3'])
    expect(done.length).toBeLessThanOrEqual(7)
    await Promise.all(running)
  }))

test('where too much of the owner’s work waits, all parts are refused, and later ones ask again', () =>
  withClock(async (pass) => {
    let refuses = true
    const slices = new Slices(
      notedTurns(() => {
        if (refuses) throw rateLimited('too much', 1)
      }),
      ada,
    )
    pass(eventLoopSliceMs)
    const parts = await Promise.allSettled([slices.next(), slices.next()])
    expect(parts.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    refuses = false
    await slices.next()
  }))
