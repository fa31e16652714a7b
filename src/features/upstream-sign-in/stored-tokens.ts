/** The tokens of a connection in its record: read, replaced as long as they are still the same, and dropped. */

import { openPart } from '../../auth/sealed-parts.ts'
import { withSetupUrl } from '../../auth/setup-links.ts'
import type { Holder } from '../../fairness/owner.ts'
import { oauthTextCharsMax } from '../../limits.ts'
import type { ConnectionRef } from '../../model/connection.ts'
import type { AuditFields } from '../../ops/audit-log.ts'
import {
  type ConnectionPrivate,
  connectionChange,
  findConnection,
  type StoredConnection,
} from '../../storage/connections.ts'
import { decideAgain } from '../../storage/decide-again.ts'
import type { UpstreamSignInDeps } from './oauth-client.ts'
import { createOAuthFetch, holderOf } from './oauth-fetch.ts'
import { revokeTokens, type UpstreamTokens, withoutTokens } from './tokens.ts'

/** The tokens of all connections, as their records have them. */
export type StoredTokens = ReturnType<typeof createStoredTokens>

/** `isOver`: somebody must sign in again, and the state of the connection says so. */
type Make = (before: ConnectionPrivate) => { readonly privatePart: ConnectionPrivate; readonly isOver?: boolean }

export function createStoredTokens(deps: UpstreamSignInDeps) {
  const { store, signInKey, links, quota } = deps
  /** The tokens in a record; undefined if nobody has signed in. */
  function tokensOf(ref: ConnectionRef, stored: StoredConnection): UpstreamTokens | undefined {
    return openPart<UpstreamTokens>('tokens', stored.privatePart, ref, signInKey)
  }

  /** Changes the record as long as its tokens have the access token `used`. False: it has others, is gone, or the namespace is full. */
  async function change(ref: ConnectionRef, used: string, make: Make): Promise<boolean> {
    return decideAgain('the connection', async () => {
      const before = await findConnection(store, ref.namespace, ref.connectionId)
      if (before === undefined || tokensOf(ref, before)?.accessToken !== used) return false
      const { privatePart, isOver = false } = make(before.privatePart)
      // A server may want the same scope for each call.
      if (privatePart === before.privatePart && before.connection.status.state === 'auth_required') return true
      const connection = isOver
        ? { ...before.connection, status: withSetupUrl({ state: 'auth_required' }, links.urlOf(ref)) }
        : before.connection
      const write = connectionChange(ref, before, { connection, privatePart }, quota)
      const holder = await holderOf(deps, ref)
      const committed = await store.commit({ ...write, fromReserve: 'revocation', holder })
      return committed.ok || (committed.full.length > 0 ? false : 'again')
    })
  }

  /** Drops the tokens: somebody must sign in again. False if they were replaced in the meantime. */
  async function drop(ref: ConnectionRef, used: string, reason: string, by: AuditFields = {}): Promise<boolean> {
    const isDropped = await change(ref, used, (before) => ({ privatePart: withoutTokens(before), isOver: true }))
    if (isDropped) await deps.audit.record('upstream.signed_out', { ...by, ...ref, reason })
    return isDropped
  }

  /** Revokes tokens in the background. */
  function revokeLater(ref: ConnectionRef, tokens: UpstreamTokens): void {
    const revoke = (holder: Holder) =>
      revokeTokens(tokens, createOAuthFetch(deps.upstream, 'Revoking the token', holder))
    void holderOf(deps, ref)
      .then(revoke)
      .catch(() => {})
  }

  /** Notes scopes that the server wants besides those of the token with the access token `used`. */
  async function wants(ref: ConnectionRef, used: string, scope: string): Promise<void> {
    await change(ref, used, (privatePart) => {
      const former = openPart<UpstreamTokens>('tokens', privatePart, ref, signInKey)?.scope
      const all = [former, privatePart.wantedScope, scope].flatMap((scopes) => scopes?.split(' ') ?? [])
      const wantedScope = [...new Set(all.filter((one) => one !== ''))].join(' ').slice(0, oauthTextCharsMax)
      const isNew = wantedScope !== privatePart.wantedScope
      return { privatePart: isNew ? { ...privatePart, wantedScope } : privatePart, isOver: true }
    })
  }

  return { of: tokensOf, change, drop, wants, revokeLater }
}
