/** What becomes of a statement whose connection is lost: a read is repeated, a commit until its outcome is certain. */

import { expect, test } from 'bun:test'
import { storeOutcomeMs, storeReadMs } from '../../../src/limits.ts'
import { type Client, StatementError } from '../../../src/storage/postgres/database-client.ts'
import type { PrimaryWatch } from '../../../src/storage/postgres/primary.ts'
import { refusals } from '../../../src/storage/postgres/schema.ts'
import { createStatements } from '../../../src/storage/postgres/statements.ts'
import { StoreError } from '../../../src/storage/store.ts'
import { clockOf } from '../../support/clock.ts'

type Answer = readonly object[] | Error

const lost = new StatementError('the connection was lost', undefined, true)
const neverSent = new StatementError('refused', undefined, false)
const said = (sqlState: string) => new StatementError('said so', sqlState, false)
const write = { puts: [{ key: Buffer.from('a'), value: Buffer.from('1') }] }

/** A database that answers each statement in turn; every answer takes a second. */
function database(...answers: readonly Answer[]) {
  const state = { now: 0, isThere: true, acknowledgements: 0, asked: 0 }
  const ids: string[] = []
  const left = [...answers]
  const client = {
    name: 'h:1',
    async query(_: string, values: readonly unknown[]) {
      state.asked += 1
      state.now += 1000
      ids.push(String(values[0]))
      const answer = left.shift() ?? lost
      if (answer instanceof Error) throw answer
      return answer
    },
  } as unknown as Client
  const primary: PrimaryWatch = {
    async current(until) {
      if (state.isThere) return client
      state.now = Math.max(state.now, until)
      throw new StoreError('unavailable', 'none')
    },
    confirmed: () => undefined,
    async lookAgain() {},
    async acknowledged() {
      state.acknowledgements += 1
    },
    close() {},
  }
  const statements = createStatements(
    primary,
    false,
    4,
    clockOf(() => state.now),
  )
  return { state, ids, statements }
}

test('a read is sent again until its deadline, and what the server says is final', async () => {
  const { statements, state } = database(lost, [{ one: 1 }])
  expect(await statements.read('SELECT', [])).toEqual([{ one: 1 }])
  const late = database(lost, lost, [{ one: 1 }])
  await expect(late.statements.read('SELECT', [])).rejects.toMatchObject({ kind: 'unavailable' })
  expect([state.asked, late.state.now]).toEqual([2, storeReadMs])
  await expect(database(said('53100')).statements.read('SELECT', [])).rejects.toThrow('said so')
})

test('a commit whose answer was lost is sent again with its id, and certain of it once another was acknowledged', async () => {
  const { statements, state, ids } = database(lost, [{ kind: 'found', at: null }])
  expect(await statements.commit(write)).toEqual({ ok: true })
  expect([new Set(ids).size, ids.length, state.acknowledgements]).toEqual([1, 2, 1])
  const again = database(lost, [])
  expect(await again.statements.commit(write)).toEqual({ ok: true })
  expect(again.state.acknowledgements).toBe(0)
})

test('a commit that may have been done is indeterminate, never unavailable', async () => {
  const { statements, state } = database()
  await expect(statements.commit(write)).rejects.toMatchObject({ kind: 'indeterminate' })
  expect(state.now).toBe(storeOutcomeMs)
  // What a later primary says of the repeated one is not what became of the first.
  for (const after of [said('53100'), said(refusals.noStandby)]) {
    await expect(database(lost, after).statements.commit(write)).rejects.toMatchObject({ kind: 'indeterminate' })
  }
  const gone = database(lost)
  const committing = gone.statements.commit(write)
  while (gone.state.asked === 0) await Promise.resolve()
  gone.state.isThere = false
  await expect(committing).rejects.toMatchObject({ kind: 'indeterminate' })
})

test('a commit that was surely not done is unavailable', async () => {
  for (const answer of [said('53100'), said('55P03'), said(refusals.tooOld)]) {
    await expect(database(answer).statements.commit(write)).rejects.toMatchObject({ kind: 'unavailable' })
  }
  await expect(database(said(refusals.noStandby)).statements.commit(write)).rejects.toThrow('--store-sync')
  const away = database(neverSent, neverSent, neverSent)
  await expect(away.statements.commit(write)).rejects.toMatchObject({ kind: 'unavailable' })
  expect(away.state.now).toBe(storeReadMs)
  const none = database()
  none.state.isThere = false
  await expect(none.statements.commit(write)).rejects.toMatchObject({ kind: 'unavailable' })
})

test('a host that is read only a moment later is left for the next primary', async () => {
  const { statements } = database(said('25006'), [])
  expect(await statements.commit(write)).toEqual({ ok: true })
})

test('conflicts and full counts are told as they are', async () => {
  const at = Buffer.from('a')
  expect(await database([{ kind: 'conflict', at }]).statements.commit(write)).toEqual({
    ok: false,
    conflicts: [at],
    full: [],
  })
  expect(await database([{ kind: 'full', at }]).statements.commit(write)).toEqual({
    ok: false,
    conflicts: [],
    full: [at],
  })
})

test('after the end all fail', async () => {
  const { statements } = database([])
  statements.close()
  for (const act of [
    statements.read('SELECT', []),
    statements.commit(write),
    statements.transaction('BEGIN', async () => 1),
  ]) {
    await expect(act).rejects.toThrow('the store is closed')
  }
})

test('large reads leave half of the connections to others, and commits leave one to small reads', async () => {
  const under = { large: 0, small: 0, commits: 0 }
  const client = {
    query(statement: string) {
      if (statement.includes('postern_commit')) under.commits += 1
      else under[statement as 'large' | 'small'] += 1
      return new Promise(() => {})
    },
  } as unknown as Client
  const primary = { current: async () => client } as unknown as PrimaryWatch
  const statements = createStatements(
    primary,
    false,
    6,
    clockOf(() => 0),
  )
  for (let read = 0; read < 10; read += 1) statements.readLarge('large').catch(() => {})
  await new Promise(setImmediate)
  expect(under).toEqual({ large: 3, small: 0, commits: 0 })
  for (let commit = 0; commit < 10; commit += 1) statements.commit(write).catch(() => {})
  void statements.read('small')
  await new Promise(setImmediate)
  expect(under).toEqual({ large: 3, small: 1, commits: 2 })
})
