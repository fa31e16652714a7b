/** Sessions of upstreams: whose they are, and when they are opened. */

import { expect, test } from 'bun:test'
import type { AuthorizedCall } from '../../../src/features/gateway/authorized-call.ts'
import { sessionOwnerOf } from '../../../src/features/gateway/forward.ts'
import { createSessions, type PlatformSession, readGreeting } from '../../../src/features/gateway/sessions.ts'
import { upstreamSessionIdCharsMax } from '../../../src/limits.ts'
import { seed } from '../../support/platform.ts'
import { otherSpellings } from '../../support/spellings.ts'

const sessions = () => createSessions(seed('session key'))
const session = (id: string): PlatformSession => ({ id, protocolVersion: '2025-06-18' })

test('a session that a client was given opens for its key alone', () => {
  const given = sessions().seal('ada one', 'upstream-1') ?? ''
  expect(given).not.toContain('upstream-1')
  // It outlives a restart.
  expect(sessions().unseal('ada one', given)).toEqual({ id: 'upstream-1' })
  expect(sessions().unseal('ada two', given)).toBe('expired')
  expect(createSessions(seed('another key')).unseal('ada one', given)).toBe('expired')
  const changed = given.replace(/.(?=.{8}$)/, (one) => (one === 'A' ? 'B' : 'A'))
  expect(sessions().unseal('ada one', changed)).toBe('expired')
  for (const other of otherSpellings(given.slice('postern.'.length)))
    expect({ other, read: sessions().unseal('ada one', `postern.${other}`) }).toEqual({ other, read: 'expired' })
  for (const foreign of ['upstream-1', '', given.slice(1)])
    expect(sessions().unseal('ada one', foreign)).toBe('foreign')
})

test('an id that is too long is given to nobody', () => {
  expect(sessions().seal('ada', 'x'.repeat(upstreamSessionIdCharsMax))).toBeString()
  expect(sessions().seal('ada', 'x'.repeat(upstreamSessionIdCharsMax + 1))).toBeUndefined()
})

test('two that need a session at once wait for the same, and the next has it', async () => {
  const own = sessions()
  let opened = 0
  const { promise, resolve } = Promise.withResolvers<PlatformSession>()
  const open = () => {
    opened += 1
    return promise
  }
  const both = [own.platform('key', 'a', open), own.platform('key', 'a', open)]
  resolve(session('s1'))
  expect(await Promise.all(both)).toEqual([session('s1'), session('s1')])
  expect(await own.platform('key', 'a', open)).toEqual(session('s1'))
  expect(opened).toBe(1)
  // Of another key, and of another connection, it is another.
  await own.platform('key', 'b', open)
  await own.platform('other', 'a', open)
  expect(opened).toBe(3)
})

test('a session that could not be opened is tried again', async () => {
  const own = sessions()
  await expect(own.platform('key', 'a', () => Promise.reject(new Error('down')))).rejects.toThrow('down')
  expect(await own.platform('key', 'a', async () => session('s1'))).toEqual(session('s1'))
})

test('a session that has ended is noop, and the one that came after it is not', async () => {
  const own = sessions()
  const first = await own.platform('key', 'a', async () => session('s1'))
  own.forget('key', 'a', first)
  const second = await own.platform('key', 'a', async () => session('s2'))
  own.forget('key', 'a', first)
  expect(await own.platform('key', 'a', async () => session('s3'))).toBe(second)
})

test('the name of a session is short, however much its connection sends, and another for each', () => {
  const named = (headers: string) =>
    sessionOwnerOf({
      context: { caller: { keyId: 'key', family: 'key', userId: 'ada' } },
      connection: {
        ...{ namespace: 'ada', connectionId: 'one' },
        stored: { connection: { createdAt: 'now', mcpUrl: 'https://one.example' }, privatePart: { headers } },
      },
    } as unknown as AuthorizedCall)
  const names = ['a', 'b', 'a'.repeat(60_000), `b${'a'.repeat(60_000)}`].map(named)
  expect(new Set(names).size).toBe(4)
  expect(Math.max(...names.map(({ length }) => length))).toBeLessThan(700)
})

test('the sessions of a key take half a megabyte, however much their servers say', async () => {
  const own = sessions()
  const greeting = { capabilities: [], instructions: '\u0101'.repeat(2048), instructionsHash: undefined }
  const names = Array.from({ length: 500 }, (_, index) => `owner ${index}`)
  for (const name of names) await own.platform('key', name, async () => ({ ...session('x'.repeat(512)), greeting }))
  const kept = names.filter((name) => own.opened('key', name) !== undefined)
  expect(kept.length).toBeGreaterThan(70)
  expect(kept.length).toBeLessThan(90)
})

test('capabilities that are a list are none', () =>
  expect(readGreeting({ capabilities: ['tools', 'prompts'] }).capabilities).toEqual([]))
