/** Which host is the primary, and how long it is confirmed; on a clock that the test moves. */

import { expect, test } from 'bun:test'
import { storeBeliefMs } from '../../../src/limits.ts'
import type { Client } from '../../../src/storage/postgres/database-client.ts'
import { choosePrimary, type Look, watchPrimary } from '../../../src/storage/postgres/primary.ts'
import { clockOf } from '../../support/clock.ts'
import { silent } from '../../support/platform.ts'

const look = (timeline: number | null, started = `${timeline}`, system = 'ours'): Look => ({
  timeline,
  started,
  system,
})
const known = { system: 'ours', timeline: 3 }

test.each([
  ['the only one', [look(null), look(3)], known, 1],
  ['the one of the highest timeline', [look(3), look(4)], known, 1],
  ['whatever it is, at the start', [look(7, 'a', 'any')], { system: undefined, timeline: 0 }, 0],
  ['the first of two names of one server', [undefined, look(3, 'same'), look(3, 'same')], known, 1],
  ['none, if none answers', [undefined, undefined], known, 'no host of the database answers'],
  ['none among standbys', [look(null)], known, 'no host of the database is its primary'],
  [
    'none of an older timeline than was seen',
    [look(2), undefined],
    known,
    'the database went back from timeline 3 to 2, so writes may be lost: check which server is right, then restart postern',
  ],
  ['none of another cluster', [look(9, 'a', 'other')], known, 'this is not the database that postern started with'],
  [
    'none of two of one timeline',
    [look(4, 'a'), look(4, 'b')],
    known,
    'two hosts of the database both say that they are the primary: stop the wrong one',
  ],
] as const)('the primary is %s', (_, looks, before, chosen) => {
  expect(choosePrimary(looks, before)).toBe(chosen)
})

/** Hosts that answer as the test says. */
function watched() {
  const state = { now: 1000, looks: [look(1, 'a'), look(null)] as (Look | undefined)[], acknowledges: true }
  const opened: string[] = []
  const closed: string[] = []
  let tick = () => {}
  const host = (at: number) => ({
    name: `h${at}`,
    async look() {
      const found = state.looks[at]
      if (found === undefined) throw new Error('away')
      return found
    },
    async beat() {
      if (!state.acknowledges) throw new Error('no acknowledgement')
    },
    open() {
      const name = `h${at}`
      opened.push(name)
      return { name, close: () => closed.push(name) } as unknown as Client
    },
  })
  const every = (_: number, act: () => void) => {
    tick = act
    return () => {}
  }
  const hosts = [host(0), host(1)]
  const watch = watchPrimary(
    hosts,
    clockOf(() => state.now),
    every,
    silent,
  )
  const settled = async () => {
    for (let turn = 0; turn < 20; turn += 1) await Promise.resolve()
  }
  return {
    state,
    opened,
    closed,
    watch,
    /** A second passes, and all that it brings is done. */
    async second() {
      state.now += 1000
      tick()
      await settled()
    },
    settled,
  }
}

test('a primary is confirmed once it has acknowledged, and no longer than that', async () => {
  const { state, watch, second, settled } = watched()
  await settled()
  expect((await watch.current(state.now)).name).toBe('h0')
  state.acknowledges = false
  for (let seconds = 1; seconds * 1000 < storeBeliefMs; seconds += 1) {
    await second()
    expect((await watch.current(state.now)).name).toBe('h0')
  }
  await second()
  await expect(watch.current(state.now)).rejects.toThrow('the store is unavailable: no acknowledgement')
  expect(watch.confirmed()).toBeUndefined()
  state.acknowledges = true
  await second()
  expect(watch.confirmed()).toEqual({ name: 'h0', timeline: 1 })
})

test('a newer primary is taken at once, and an older one that comes back is not', async () => {
  const { state, watch, opened, closed, second, settled } = watched()
  await settled()
  state.looks = [look(1, 'a'), look(2, 'b')]
  await second()
  expect((await watch.current(state.now)).name).toBe('h1')
  expect([opened, closed]).toEqual([['h0', 'h1'], ['h0']])
  state.looks = [look(1, 'a'), undefined]
  for (let seconds = 0; seconds < 6; seconds += 1) await second()
  state.acknowledges = false
  for (let seconds = 0; seconds < 6; seconds += 1) await second()
  await expect(watch.current(state.now)).rejects.toThrow('the store is unavailable')
  expect(opened).toEqual(['h0', 'h1'])
})

test('a primary that became a standby is left at once; one that only misses a look is not', async () => {
  const { state, watch, second, settled } = watched()
  await settled()
  state.looks = [undefined, look(null)]
  await second()
  expect(watch.confirmed()?.name).toBe('h0')
  state.looks = [look(null), look(null)]
  await second()
  expect(watch.confirmed()).toBeUndefined()
})

test('what is promoted where it was is opened anew: what was under way belongs to its past', async () => {
  const { state, watch, opened, closed, second, settled } = watched()
  await settled()
  state.looks = [look(2, 'a'), look(null)]
  await second()
  expect([opened, closed]).toEqual([['h0', 'h0'], ['h0']])
  expect(watch.confirmed()?.timeline).toBe(2)
})

test('acknowledged() waits for a heartbeat that was sent after it was called', async () => {
  const { state, watch, second, settled } = watched()
  await settled()
  state.acknowledges = false
  state.now += 10
  const waiting = watch.acknowledged(state.now + 60_000).then(() => 'done')
  await settled()
  expect(await Promise.race([waiting, Promise.resolve('waits')])).toBe('waits')
  state.acknowledges = true
  await second()
  expect(await waiting).toBe('done')
})

test('nothing is current after the end', async () => {
  const { state, watch, closed, settled } = watched()
  await settled()
  watch.close()
  await expect(watch.current(state.now + 1000)).rejects.toThrow('the store is unavailable')
  expect(closed).toEqual(['h0'])
})
