/** Which wire serves a request, and how many may be connecting. The wires are told what happens. */

import { afterEach, beforeEach, describe, expect, jest, test } from 'bun:test'
import { socketIdleMs } from '../../src/limits.ts'
import { createConnectionPool, pendingConnectsMax } from '../../src/upstream/connection-pool.ts'
import type { HttpConnection, PoolEvents } from '../../src/upstream/http-connection.ts'
import { unhurried } from '../support/pace.ts'

const receiver = { ...unhurried, onHead() {}, onData() {}, onEnd() {}, onError() {} }
const request = { method: 'POST', path: '/', host: 'a', headers: {}, via: '1.1 us', body: '{}' }

interface Opened {
  readonly wire: HttpConnection
  readonly keeper: PoolEvents
  starts: number
  closes: number
}

function pool() {
  const opened: Opened[] = []
  const sockets = createConnectionPool({ address: '192.0.2.1', port: 80, certified: undefined }, (_, keeper) => {
    const one: Opened = {
      keeper,
      starts: 0,
      closes: 0,
      wire: {
        start() {
          one.starts += 1
          return () => {}
        },
        close() {
          one.closes += 1
          keeper.leave(one.wire)
        },
      },
    }
    opened.push(one)
    return one.wire
  })
  const send = () => void sockets.send(request, receiver)
  /** The wire is connected, its exchange is over, and it is kept. */
  const finish = (index: number, milliseconds = 60_000) => {
    const { keeper, wire } = opened[index] as Opened
    keeper.connected()
    return keeper.keep(wire, milliseconds)
  }
  return { sockets, opened, send, finish, starts: () => opened.map((one) => one.starts) }
}

test('as many may be connecting as are allowed, and one more for each that is connected', () => {
  const { opened, send } = pool()
  for (let i = 0; i < pendingConnectsMax; i += 1) send()
  expect(send).toThrow('it takes too long to connect')
  for (let i = 0; i < 3; i += 1) {
    opened[i]?.keeper.connected()
    send()
    expect(send).toThrow('it takes too long to connect')
  }
})

test('the wire that was used last serves next, and one whose time is over serves nobody', () => {
  const { opened, send, finish, starts } = pool()
  for (let i = 0; i < 3; i += 1) send()
  expect([finish(0), finish(1), finish(2, -1)]).toEqual([true, true, true])
  send()
  expect([starts(), opened.map(({ closes }) => closes)]).toEqual([
    [1, 2, 1],
    [0, 0, 1],
  ])
  send()
  send()
  expect(starts()).toEqual([2, 2, 1, 1])
})

test('a wire that its server closed serves nobody', () => {
  const { opened, send, finish, starts } = pool()
  for (let i = 0; i < 2; i += 1) send()
  for (let i = 0; i < 2; i += 1) finish(i)
  opened[1]?.keeper.leave(opened[1].wire)
  opened[1]?.keeper.leave(opened[1].wire)
  send()
  expect(starts()).toEqual([2, 1])
  send()
  finish(0)
  finish(2)
  opened[0]?.keeper.leave(opened[0].wire)
  send()
  expect(starts()).toEqual([2, 1, 2])
  finish(2)
  opened[2]?.keeper.leave(opened[2].wire)
  send()
  expect(starts()).toEqual([2, 1, 2, 1])
})

test('a pool that is closed keeps nothing', () => {
  const { sockets, opened, send, finish } = pool()
  for (let i = 0; i < 3; i += 1) send()
  for (let i = 0; i < 2; i += 1) finish(i)
  sockets.close()
  expect([opened.map(({ closes }) => closes), finish(2)]).toEqual([[1, 1, 0], false])
})

describe('by a clock of its own', () => {
  beforeEach(() => void jest.useFakeTimers())
  afterEach(() => void jest.useRealTimers())

  test('a wire serves until its time is over, and not in that very millisecond', () => {
    const { opened, send, finish, starts } = pool()
    send()
    finish(0, 1000)
    jest.advanceTimersByTime(999)
    send()
    finish(0, 1000)
    jest.advanceTimersByTime(1000)
    send()
    expect([starts(), opened[0]?.closes]).toEqual([[2, 1], 1])
  })

  test('wires that nobody uses are closed when their time is over, at the next look', () => {
    const { opened, send, finish } = pool()
    const closes = () => opened.map((one) => one.closes)
    for (let i = 0; i < 3; i += 1) send()
    finish(0, socketIdleMs)
    finish(1, socketIdleMs + 1)
    finish(2, 3 * socketIdleMs)
    expect(jest.getTimerCount()).toBe(1)
    jest.advanceTimersByTime(socketIdleMs - 1)
    expect(closes()).toEqual([0, 0, 0])
    jest.advanceTimersByTime(1)
    expect(closes()).toEqual([1, 0, 0])
    jest.advanceTimersByTime(socketIdleMs)
    expect(closes()).toEqual([1, 1, 0])
    jest.advanceTimersByTime(socketIdleMs)
    expect(closes()).toEqual([1, 1, 1])
    // Nothing is left to look at, until the next wire.
    expect(jest.getTimerCount()).toBe(0)
    send()
    finish(3, socketIdleMs)
    jest.advanceTimersByTime(socketIdleMs)
    expect(closes()).toEqual([1, 1, 1, 1])
  })

  test('a pool that is closed looks at nothing any more', () => {
    const { sockets, send, finish } = pool()
    send()
    finish(0)
    expect(jest.getTimerCount()).toBe(1)
    sockets.close()
    expect(jest.getTimerCount()).toBe(0)
  })
})
