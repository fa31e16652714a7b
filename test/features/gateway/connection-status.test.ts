/** The state of a connection, as its traffic tells it. */

import { expect, test } from 'bun:test'
import { createStatusRecorder, statusWriteIntervalMs } from '../../../src/features/gateway/connection-status.ts'
import type { Connection, ConnectionStatus } from '../../../src/model/connection.ts'
import {
  type ConnectionPrivate,
  connectionChange,
  findConnection,
  type StoredConnection,
} from '../../../src/storage/connections.ts'
import { type Store, StoreError } from '../../../src/storage/store.ts'
import { clockOf } from '../../support/clock.ts'
import { openMemoryStore } from '../../support/memory-store.ts'
import { connection } from '../connections/world.ts'

const settled = () => new Promise((resolve) => setImmediate(resolve))
const broken: ConnectionStatus = { state: 'error', message: 'it is gone' }

async function recording(more: Partial<Store> = {}) {
  const memory = openMemoryStore()
  let commits = 0
  const store: Store = {
    ...memory,
    commit: (write) => {
      commits += 1
      return memory.commit(write)
    },
    ...more,
  }
  for (const id of ['a', 'b'])
    await memory.commit(
      connectionChange({ namespace: 'acme', connectionId: id }, undefined, {
        connection: connection(id),
        privatePart: { server: 's' },
      }),
    )
  const time = { now: 0 }
  const warnings: string[] = []
  const log = { info() {}, error() {}, warn: (event: string) => void warnings.push(event) }
  const recordStatus = createStatusRecorder(
    store,
    clockOf(() => time.now),
    log,
  )
  return {
    time,
    warnings,
    commits: () => commits,
    record: async (id: string, status: ConnectionStatus, called?: StoredConnection) => {
      const stored = called ?? (await findConnection(memory, 'acme', id))
      if (stored === undefined) throw new Error(`${id} is there`)
      recordStatus({ namespace: 'acme', connectionId: id }, stored, status)
      await settled()
    },
    stored: async (id: string) => findConnection(memory, 'acme', id),
    /** Whatever it is now. */
    async change(id: string, { connection: one, privatePart }: Pick<StoredConnection, 'connection' | 'privatePart'>) {
      const before = await findConnection(memory, 'acme', id)
      await memory.commit(
        connectionChange({ namespace: 'acme', connectionId: id }, before, { connection: one, privatePart }),
      )
    },
  }
}

test('a state that is another is written, and nothing else of the connection changes', async () => {
  const { record, stored } = await recording()
  const before = await stored('a')
  await record('a', broken)
  const after = await stored('a')
  expect(after?.connection).toEqual({ ...(before?.connection as object), status: broken } as never)
  expect(after?.privatePart).toEqual({ server: 's', contactedAt: 0, statusSince: 0 })
})

test('the state of a connection that was called before it was changed is dropped', async () => {
  const { record, stored, change } = await recording()
  // Written at once, whenever the last one was.
  const wanting: ConnectionStatus = { state: 'auth_required' }
  const called = await stored('a')
  if (called === undefined) throw new Error('it is there')
  const parts: Partial<ConnectionPrivate>[] = [{ setups: 1 }, { headers: 'x' }, { input: 'x' }, { oauth: 'x' }]
  for (const part of parts) {
    await change('a', { connection: called.connection, privatePart: { ...called.privatePart, ...part } })
    await record('a', wanting, called)
    expect((await stored('a'))?.connection.status).toEqual({ state: 'connected' })
  }
  const others: Partial<Connection>[] = [
    { mcpUrl: 'https://a.example.com/2' },
    { createdAt: '2026-03-03T09:00:00.000Z' },
  ]
  for (const other of others) {
    await change('a', { ...called, connection: { ...called.connection, ...other } })
    await record('a', wanting, called)
    expect((await stored('a'))?.connection.status).toEqual({ state: 'connected' })
  }
  // New tokens of the same person, or another name, are no reason.
  await change('a', { connection: { ...called.connection, name: 'b' }, privatePart: { server: 's', tokens: 'x' } })
  await record('a', wanting, called)
  expect((await stored('a'))?.connection.status).toEqual(wanting)
})

test('of a state that is the same, the contact is written once an hour', async () => {
  const { time, record, stored, commits } = await recording()
  time.now = 1000
  await record('a', { state: 'connected' })
  expect([commits(), (await stored('a'))?.privatePart]).toEqual([1, { server: 's', contactedAt: 1000 }])
  time.now += 3600 * 1000 - 1
  await record('a', { state: 'connected' })
  expect(commits()).toBe(1)
  time.now += statusWriteIntervalMs
  await record('a', { state: 'connected' })
  expect(commits()).toBe(2)
})

test('of one connection it is written once in ten seconds, whatever happens to others', async () => {
  const { time, record, stored, commits } = await recording()
  await record('a', broken)
  time.now = statusWriteIntervalMs - 1
  await record('a', { state: 'connected' })
  expect([commits(), (await stored('a'))?.connection.status.state]).toEqual([1, 'error'])
  await record('b', broken)
  expect((await stored('b'))?.connection.status.state).toBe('error')
  time.now = statusWriteIntervalMs
  await record('a', { state: 'connected' })
  expect((await stored('a'))?.connection.status.state).toBe('connected')
})

test('a connection that is gone is not made again', async () => {
  const { record, stored, commits, warnings } = await recording()
  await record('none', broken, await stored('a'))
  expect([await stored('none'), commits(), warnings.length]).toEqual([undefined, 0, 0])
})

test('what cannot be written is said in the log, and harms nobody', async () => {
  const { record, warnings } = await recording({
    commit: () => Promise.reject(new StoreError('unavailable', 'the disk is full')),
  })
  await record('a', broken)
  expect(warnings).toEqual(['the status of a connection could not be written'])
})
