/** Tokens behind a connection that others write all the time: what changes them ends after some attempts. */

import { expect, test } from 'bun:test'
import { createDirectory } from '../../../src/auth/directory.ts'
import { sealPart } from '../../../src/auth/sealed-parts.ts'
import type { UpstreamSignInDeps } from '../../../src/features/upstream-sign-in/oauth-client.ts'
import { createUpstreamCredentials } from '../../../src/features/upstream-sign-in/token-refresh.ts'
import type { UpstreamTokens } from '../../../src/features/upstream-sign-in/tokens.ts'
import { connectionChange, findConnection } from '../../../src/storage/connections.ts'
import { writeAttemptsMax } from '../../../src/storage/decide-again.ts'
import { clockOf } from '../../support/clock.ts'
import { openMemoryStore } from '../../support/memory-store.ts'
import { seed } from '../../support/platform.ts'
import { issuer, mcpUrl } from './world.ts'

const ref = { namespace: 'ada', connectionId: 'guarded' }
const now = Date.parse('2026-03-02T09:00:00.000Z')
const tokens: UpstreamTokens = {
  accessToken: 'a',
  refreshToken: 'r',
  obtainedAt: now - 1000,
  expiresAt: now,
  client: { clientId: 'c', method: 'none' },
  server: { issuer } as UpstreamTokens['server'],
  resource: mcpUrl,
}

/** Credentials in a store whose commits all conflict. */
async function contended() {
  const store = openMemoryStore()
  const connection = {
    connectionId: 'guarded',
    name: 'guarded',
    mcpUrl,
    metadata: null,
    transport: 'http',
    status: { state: 'connected' },
    createdAt: new Date(now).toISOString(),
  } as const
  const privatePart = { tokens: sealPart('tokens', tokens, ref, seed('sign-in key')) }
  await store.commit(
    connectionChange({ namespace: 'ada', connectionId: 'guarded' }, undefined, { connection, privatePart }),
  )
  const state = { commits: 0 }
  const deps = {
    store: {
      ...store,
      async commit() {
        state.commits += 1
        return { ok: false, conflicts: [], full: [] }
      },
    },
    signInKey: seed('sign-in key'),
    clock: clockOf(() => now),
    links: { urlOf: () => 'https://here.example/setup' },
    audit: { async record() {} },
    directory: createDirectory(store),
  } as unknown as UpstreamSignInDeps
  const stored = await findConnection(store, 'ada', 'guarded')
  if (stored === undefined) throw new Error('no connection')
  return { state, stored, credentials: createUpstreamCredentials(deps) }
}

test('signing out', async () => {
  const { state, credentials } = await contended()
  await expect(credentials.signOut(ref, 'by a person', {})).rejects.toThrow('changes too fast')
  expect(state.commits).toBe(writeAttemptsMax)
})

test('a refresh', async () => {
  const { state, credentials, stored } = await contended()
  const call = { ref, stored, holder: { keyId: 'k', family: 'k' }, request: new Request(mcpUrl) }
  await expect(credentials.of(call)).rejects.toThrow('changes too fast')
  expect(state.commits).toBe(writeAttemptsMax)
})
