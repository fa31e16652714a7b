/** Places are given in rounds among owners, and removals come first. */

import { expect, test } from 'bun:test'
import { Queue, Queues } from '../../src/fairness/queue.ts'
import { waitingJobsMax } from '../../src/limits.ts'

const of = (userId: string, family = userId) => ({ keyId: family, family, userId })

/** Enters so often, and notes the name when a place is given. */
function enterAll(queue: Queue, userId: string, count: number, log: string[]) {
  return Array.from({ length: count }, async (_, index) => {
    const leave = await queue.enter(of(userId, `${userId} key ${index % 3}`))
    log.push(userId)
    return leave
  })
}
const turn = () => new Promise((resolve) => setImmediate(resolve))

test('an owner takes its part of the places, and another finds one at once', async () => {
  const log: string[] = []
  const queue = new Queue(8, 2)
  const all = enterAll(queue, 'mallory', 40, log)
  await turn()
  expect(log).toEqual(['mallory', 'mallory'])
  const leave = await queue.enter(of('ada'))
  leave()
  // Each place that is left goes to the next that waits.
  for (const entered of all) (await entered)()
  expect(log).toHaveLength(40)
  await turn()
  expect(queue.isIdle).toBe(true)
})

test('places are given to owners in turn', async () => {
  const log: string[] = []
  const queue = new Queue(1, 1)
  const first = await queue.enter(of('first'))
  const all = [...enterAll(queue, 'a', 5, log), ...enterAll(queue, 'b', 2, log)]
  first()
  await Promise.all(all.map(async (entered) => (await entered)()))
  expect(log.join('')).toBe('ababaaa')
})

test('what takes access away comes before all that waits', async () => {
  const queues = new Queues()
  const log: string[] = []
  const begin = Promise.withResolvers<void>()
  const note = (name: string) => async () => void log.push(name)
  const first = queues.run('directory', of('mallory'), () => begin.promise)
  const writes = Array.from({ length: 20 }, () => queues.run('directory', of('mallory'), note('write')))
  const own = queues.run('directory', of('ada'), note('own'))
  const removal = queues.run('directory', of('ada'), note('removal'), true)
  const elsewhere = await queues.run('another', of('ada'), async () => 'at once')
  begin.resolve()
  await Promise.all([first, ...writes, own, removal])
  expect(elsewhere).toBe('at once')
  expect(log.slice(0, 3)).toEqual(['removal', 'write', 'own'])
})

test('removals of one owner hold up nobody else’s writes', async () => {
  const queue = new Queue(1, 1)
  const log: string[] = []
  const first = await queue.enter(of('first'))
  const enter = async (holder: string, isRemoval: boolean) => {
    const leave = await queue.enter(of(holder), isRemoval)
    log.push(holder)
    leave()
  }
  const removals = Array.from({ length: 8 }, () => enter('mallory', true))
  const writes = [enter('ada', false), enter('grace', false)]
  first()
  await Promise.all([...removals, ...writes])
  expect(log.indexOf('ada')).toBe(3)
  expect(log.indexOf('grace')).toBe(7)
})

test('what waits for one key, and for all keys of an owner, has a bound', async () => {
  const queue = new Queue(1, 1)
  const leave = await queue.enter(of('mallory'))
  const waiting = [1, 2].flatMap((key) =>
    Array.from({ length: waitingJobsMax }, () => queue.enter(of('mallory', `key ${key}`))),
  )
  for (const key of ['key 1', 'key 3'])
    await expect(queue.enter(of('mallory', key))).rejects.toMatchObject({ code: 'rate_limited' })
  const others = queue.enter(of('ada'))
  leave()
  await Promise.all([...waiting, others].map(async (entered) => (await entered)()))
})

test('a task that fails leaves its place', async () => {
  const queues = new Queues()
  const failing = queues.run('directory', of('ada'), () => Promise.reject(new Error('no')))
  await expect(failing).rejects.toThrow('no')
  expect(await queues.run('directory', of('ada'), async () => 1)).toBe(1)
})
