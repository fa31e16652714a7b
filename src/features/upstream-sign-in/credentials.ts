/**
 * The token for a call through a connection that somebody has signed in: refreshed ahead of its end and after a 401
 * (sign-in contract, 1.6).
 */

import { PlatformError } from '../../errors.ts'
import type { ConnectionRef } from '../../model/connection.ts'
import type { AuditFields } from '../../ops/audit-log.ts'
import { findConnection, type StoredConnection } from '../../storage/connections.ts'
import { decideAgain } from '../../storage/decide-again.ts'
import type { UpstreamSignInDeps } from './oauth-client.ts'
import { type CredentialsCall, createRefresh } from './refresh.ts'
import { createStoredTokens } from './stored-tokens.ts'
import type { UpstreamTokens } from './tokens.ts'

/** Contract (sign-in 1.6): a token is refreshed with less left than this, or than half of a shorter life. Past it: it is used as it is. */
const refreshAheadMs = 60_000

export interface Credentials {
  readonly accessToken: string
  /** Called after a 401: other credentials, or undefined if nobody is signed in any more. Throws `upstream_error`. */
  renew(): Promise<Credentials | undefined>
  /** Called after a 403 for more scopes: they are asked for when somebody signs in anew. The token stays in use. */
  wants(scope: string): Promise<void>
  /** Called after another 401: the tokens are dropped, and somebody must sign in. */
  refused(): Promise<void>
}

/** The credentials of all connections. */
export type UpstreamCredentials = ReturnType<typeof createUpstreamCredentials>

export function createUpstreamCredentials(deps: UpstreamSignInDeps) {
  const { store, audit, clock } = deps
  const tokensIn = createStoredTokens(deps)
  const refresh = createRefresh({ ...deps, tokensIn })

  function credentials(call: CredentialsCall, { accessToken }: UpstreamTokens): Credentials {
    return {
      accessToken,
      async renew() {
        const next = await refresh(call, accessToken)
        return next && credentials(call, next)
      },
      wants: (scope) => tokensIn.wants(call.ref, accessToken, scope),
      async refused() {
        await tokensIn.drop(call.ref, accessToken, 'the server refuses its token')
      },
    }
  }

  return {
    /** Undefined if nobody has signed in. Throws `upstream_error` if an expired token cannot be refreshed right now. */
    async of(call: CredentialsCall): Promise<Credentials | undefined> {
      const tokens = tokensIn.of(call.ref, call.stored)
      if (tokens === undefined) return undefined
      if (!isDue(tokens, clock.now())) return credentials(call, tokens)
      try {
        const next = await refresh(call, tokens.accessToken)
        return next && credentials(call, next)
      } catch (error) {
        // A token that is still good may be used, although it cannot be refreshed right now.
        if (error instanceof PlatformError && (tokens.expiresAt ?? 0) > clock.now()) return credentials(call, tokens)
        throw error
      }
    },
    /** Revokes the tokens of a record that was deleted or replaced, in the background. */
    async revoke(ref: ConnectionRef, stored: StoredConnection, reason: string): Promise<void> {
      const tokens = tokensIn.of(ref, stored)
      if (tokens === undefined) return
      tokensIn.revokeLater(ref, tokens)
      await audit.record('upstream.signed_out', { ...ref, reason })
    },
    /** Drops the tokens and revokes them in the background. False if nobody had signed in. `by`: who. */
    async signOut(ref: ConnectionRef, reason: string, by: AuditFields): Promise<boolean> {
      return decideAgain('the connection', async () => {
        const stored = await findConnection(store, ref.namespace, ref.connectionId)
        const tokens = stored && tokensIn.of(ref, stored)
        if (tokens === undefined) return false
        if (!(await tokensIn.drop(ref, tokens.accessToken, reason, by))) return 'again'
        tokensIn.revokeLater(ref, tokens)
        return true
      })
    },
  }
}

/**
 * Whether to refresh ahead: with less than a minute left, or than half of a shorter life. Where nothing refreshes it, a
 * token is good to its end.
 */
function isDue({ obtainedAt, expiresAt, refreshToken }: UpstreamTokens, now: number): boolean {
  if (expiresAt === undefined) return false
  if (refreshToken === undefined) return expiresAt <= now
  return expiresAt - now < Math.min(refreshAheadMs, (expiresAt - obtainedAt) / 2)
}
