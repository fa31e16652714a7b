import { expect, test } from 'bun:test'
import { ownerOf } from '../../src/fairness/owner.ts'
import { Paces } from '../../src/fairness/pace.ts'
import { inSlices, Turns, type Work } from '../../src/fairness/turns.ts'
import { eventLoopSliceMs, sliceCost, waitingJobsMax } from '../../src/limits.ts'
import { clockOf } from '../support/clock.ts'

/** Work of so many steps, that notes each in `log`. */
function* steps(name: string, count: number, cost: number, log: string[]): Work<string> {
  for (let step = 1; step <= count; step += 1) {
    yield cost
    log.push(`${name}${step}`)
  }
  return name
}

const of = (family: string, keyId = family) => ({ keyId, family })
const [ada, mallory] = [of('ada'), of('mallory')]
/** With all its clocks at this time: by the real ones, a pause of the runtime would make an owner wait. */
const turnsBy = (now: () => number) => new Turns(new Paces(clockOf(now)), now, now)
const nextTurn = () => new Promise((resolve) => setImmediate(resolve))

test('work that fits a slice is done at once', async () => {
  const log: string[] = []
  const running = turnsBy(() => 0).run(ada, steps('a', 10, sliceCost / 20, log))
  expect(log).toHaveLength(10)
  expect(await running).toBe('a')
})

test('other work has its turn between slices, however long one caller’s is', async () => {
  const turns = turnsBy(() => 0)
  const log: string[] = []
  const long = [1, 2, 3].map((n) => turns.run(mallory, steps(`m${n}-`, 40, sliceCost, log)))
  const short = turns.run(ada, steps('a', 3, sliceCost, log))
  expect(await short).toBe('a')
  // One slice of each caller in turn: three of hers meant three of the other's, or one more.
  expect(log.filter((name) => name.startsWith('m')).length).toBeLessThanOrEqual(4)
  expect(await Promise.all(long)).toEqual(['m1-', 'm2-', 'm3-'])
  expect(log).toHaveLength(123)
})

test('many tokens of one key have the turns of one', async () => {
  const turns = turnsBy(() => 0)
  const log: string[] = []
  const many = Array.from({ length: 100 }, (_, n) =>
    turns.run(of(`token ${n}`, 'mallory'), steps(`m${n}-`, 3, sliceCost, log)),
  )
  expect(await turns.run(ada, steps('a', 3, sliceCost, log))).toBe('a')
  expect(log.filter((name) => name.startsWith('m')).length).toBeLessThanOrEqual(4)
  await Promise.all(many)
  // Among themselves too: each its first step before one its second.
  const ofMany = log.filter((name) => name.startsWith('m'))
  expect(ofMany.slice(0, 100).every((name) => name.endsWith('-1'))).toBe(true)
})

test('one slice is done in a turn of the event loop', async () => {
  const log: string[] = []
  const turns = turnsBy(() => 0)
  const work = ['a', 'b'].map((name) => turns.run(of(name), steps(name, 3, sliceCost, log)))
  expect(log).toEqual([])
  for (const done of [1, 2, 3, 4]) {
    await nextTurn()
    expect(log).toHaveLength(done)
  }
  await Promise.all(work)
})

test('who is done has no turn more, and every turn is somebody’s', async () => {
  const log: string[] = []
  const turns = turnsBy(() => 0)
  const callers = [of('a'), of('b'), of('c', 'b'), of('d', 'd')]
  const counts = [1, 2, 3, 6]
  const work = counts.map((count, i) =>
    turns.run(callers[i] ?? ada, steps(callers[i]?.family ?? '', count, sliceCost, log)),
  )
  const total = counts.reduce((sum, count) => sum + count)
  for (let done = 1; done <= total; done += 1) {
    await nextTurn()
    expect(log).toHaveLength(done)
  }
  await Promise.all(work)
})

test('steps that reach a slice together are in two, and those that do not are in one', async () => {
  for (const [cost, atOnce] of [
    [sliceCost / 2, 1],
    [sliceCost / 2 - 1, 2],
  ] as const) {
    const log: string[] = []
    const running = turnsBy(() => 0).run(ada, steps('a', 2, cost, log))
    expect(log).toHaveLength(atOnce)
    await running
  }
})

test('a step that costs more than a slice is taken alone', async () => {
  const log: string[] = []
  const done = turnsBy(() => 0).run(ada, steps('a', 2, sliceCost * 10, log))
  await nextTurn()
  expect(log).toEqual(['a1'])
  await done
})

test('what work throws reaches who asked for it', async () => {
  function* failing(cost: number): Work<never> {
    yield cost
    throw new Error('no')
  }
  expect(() => turnsBy(() => 0).run(ada, failing(1))).toThrow('no')
  await expect(Promise.resolve(turnsBy(() => 0).run(ada, failing(sliceCost)))).rejects.toThrow('no')
})

test('a caller’s work has a bound, and nobody else’s', async () => {
  const turns = turnsBy(() => 0)
  const log: string[] = []
  const all = Array.from({ length: waitingJobsMax }, () => turns.run(mallory, steps('m', 1, sliceCost, log)))
  await expect((async () => turns.run(mallory, steps('m', 1, sliceCost, log)))()).rejects.toMatchObject({
    code: 'rate_limited',
    message: 'This caller has too many expensive requests in progress; try again in 1 s',
    options: { retryAfter: 1 },
  })
  expect(await turns.run(ada, steps('a', 1, sliceCost, log))).toBe('a')
  await Promise.all(all)
})

test('an owner whose work waits runs nothing at once besides', async () => {
  const log: string[] = []
  const turns = turnsBy(() => 0)
  const long = turns.run(mallory, steps('m', 3, sliceCost, log))
  const small = turns.run(mallory, steps('s', 1, 1, log))
  const others = turns.run(ada, steps('a', 1, 1, log))
  expect(log).toEqual(['a1'])
  await Promise.all([long, small, others])
  expect(log).toHaveLength(5)
})

test('work inside a queue waits for nobody’s turns, and holds the event loop for a slice at a time', async () => {
  const log: string[] = []
  const turns = turnsBy(() => 0)
  const many = Array.from({ length: 100 }, () => turns.run(mallory, steps('m', 3, sliceCost, log)))
  expect(await inSlices(steps('a', 4, sliceCost, log))).toBe('a')
  const before = log.indexOf('a4')
  expect(log.slice(0, before).filter((name) => name.startsWith('m')).length).toBeLessThanOrEqual(5)
  expect(await inSlices(steps('b', 0, 1, log))).toBe('b')
  await Promise.all(many)
})

test('a step that takes long keeps the next one of its owner waiting, and nobody else’s', async () => {
  let now = 0
  const time = new Paces(clockOf(() => now))
  const turns = new Turns(time, () => now)
  const log: string[] = []
  function* long(name: string): Work<string> {
    yield sliceCost
    now += 60
    log.push(name)
    return name
  }
  const running = [turns.run(mallory, long('m1')), turns.run(mallory, long('m2')), turns.run(ada, long('a1'))]
  await running[2]
  expect(log).toEqual(['m1', 'a1'])
  const wait = time.wait(ownerOf(mallory))
  expect(wait).toBeGreaterThan(60)
  now += wait
  await Promise.all(running)
  expect(log).toEqual(['m1', 'a1', 'm2'])
})

test('an owner’s short work does not fill a turn of the event loop, however many pieces it comes in', async () => {
  let clock = 0
  const turns = turnsBy(() => clock)
  let done = 0
  function* piece(): Work<void> {
    yield sliceCost / 6
    clock += 1
    done += 1
  }
  const all = Array.from({ length: 40 }, () => turns.run(mallory, piece()))
  const atOnce = done
  expect(atOnce).toBeLessThanOrEqual(eventLoopSliceMs)
  // Nobody else's waits for it, and each later turn has one piece.
  const log: string[] = []
  await turns.run(ada, steps('a', 1, 1, log))
  await nextTurn()
  expect(done).toBeLessThanOrEqual(atOnce + 2)
  await Promise.all(all)
  expect(done).toBe(40)
})

test('small work that thousands of requests bring together is never refused, and fills no turn of the event loop', async () => {
  let clock = 0
  const turns = turnsBy(() => clock)
  let done = 0
  function* piece(): Work<void> {
    yield 200
    clock += 0.1
    done += 1
  }
  const perTurn = 2 * (eventLoopSliceMs / 0.1)
  const all = Array.from({ length: 3000 }, () => turns.run(ada, piece()))
  for (let turn = 1; turn <= 3000 / (perTurn / 2); turn += 1) {
    expect(done).toBeLessThanOrEqual(turn * perTurn)
    // Several share a turn: a server that answers many small requests is no slower for it.
    expect(done).toBeGreaterThanOrEqual(Math.min(3000, (turn * perTurn) / 2))
    await nextTurn()
  }
  await Promise.all(all)
})

test('the time in which other programs have the processor is no work of anybody', () => {
  function* interrupted(): Work<void> {
    yield 1
    Bun.sleepSync(50)
  }
  const isCharged = () => {
    const turns = turnsBy(() => 0)
    expect(turns.run(ada, interrupted())).toBeUndefined()
    return turns.run(ada, steps('a', 1, 1, [])) instanceof Promise
  }
  // Now and then the host of a virtual machine takes its processor: nobody in it can tell that from work.
  expect(Array.from({ length: 10 }).some(() => !isCharged())).toBe(true)
})

test('it is no work of anybody either after much work of the same turn', () => {
  let [now, spent] = [0, 0]
  const turns = new Turns(
    new Paces(clockOf(() => now)),
    () => spent,
    () => now,
  )
  function* busy(milliseconds: number): Work<void> {
    yield 1
    now += milliseconds
    spent += milliseconds
  }
  function* interrupted(): Work<void> {
    yield 1
    now += 50
  }
  // Each by itself is so short that nobody asks for the thread's own time.
  for (let piece = 0; piece < 500; piece += 1) turns.run({ ...ada, userId: `user-${piece}` }, busy(0.1))
  expect(turns.run(ada, interrupted())).toBeUndefined()
  expect(turns.run(ada, steps('a', 1, 1, []))).not.toBeInstanceOf(Promise)
})

test('a step that takes longer than it said counts for its owner, who then waits, and nobody else', async () => {
  let now = 0
  const turns = turnsBy(() => now)
  function* underrated(): Work<string> {
    yield 1
    now += 50
    return 'done'
  }
  expect(turns.run(mallory, underrated())).toBe('done')
  let isDone = false
  const next = Promise.resolve(turns.run(mallory, underrated())).then(() => {
    isDone = true
  })
  await nextTurn()
  expect(isDone).toBe(false)
  expect(turns.run(ada, underrated())).toBe('done')
  now += 1000
  await next
})
