/**
 * The token for a call through a connection that somebody has signed in: refreshed ahead of its end and after a 401
 * (contract, 14.6), once for all calls that wait, in whichever process. The refresh is claimed in the store, and the
 * new tokens are durable before anybody uses them.
 */

import { sealPart } from '../../auth/sealed-parts.ts'
import { PlatformError } from '../../errors.ts'
import type { ConnectionRef } from '../../model/connection.ts'
import type { AuditFields } from '../../ops/audit-log.ts'
import { connectionChange, findConnection, type StoredConnection } from '../../storage/connections.ts'
import { decideAgain } from '../../storage/decide-again.ts'
import { forgetClient, type UpstreamSignInDeps } from './oauth-client.ts'
import { createOAuthFetch, holderOf, SignInProblem } from './oauth-fetch.ts'
import { createStoredTokens, type StoredTokens } from './stored-tokens.ts'
import { refreshTokens, type UpstreamTokens } from './tokens.ts'

/** Contract 14.6: how long before its expiry postern refreshes a token; a token that lives less than two minutes is refreshed after half of its lifetime. Past it: with more time left, postern uses the token as it is. */
const refreshAheadMs = 60_000

/** Contract 14.6: milliseconds for which one process alone may refresh a connection's tokens while other processes wait. Past it: another process tries. */
export const refreshClaimMs = 15_000
/** Contract 14.6: pause after a refresh that failed temporarily. Past it: the next call tries again. */
export const refreshRetryMs = 5_000

/** Time between looks at a refresh that another process makes. Past it: the next look. */
const refreshPollMs = 100

interface CredentialsCall {
  readonly ref: ConnectionRef
  readonly stored: StoredConnection
  /** Ends a wait when its client disconnects. */
  readonly request: Request
}

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
  /** Refreshes in progress in this process, by connection and access token. */
  const refreshing = new Map<string, Promise<UpstreamTokens | undefined>>()

  /** The tokens after those with the access token `used`; undefined if there are none any more. */
  function refresh(call: CredentialsCall, used: string): Promise<UpstreamTokens | undefined> {
    const name = `${call.ref.namespace}/${call.ref.connectionId} ${used}`
    const claiming = () => claimed({ ...deps, tokensIn }, call, used)
    return refreshing.getOrInsertComputed(name, () =>
      decideAgain('the connection', claiming).finally(() => refreshing.delete(name)),
    )
  }

  const credentials = (call: CredentialsCall, tokens: UpstreamTokens) =>
    credentialsOf({ tokensIn, refresh: (used) => refresh(call, used) }, call, tokens)

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

interface Refreshing {
  readonly tokensIn: StoredTokens
  readonly refresh: (used: string) => Promise<UpstreamTokens | undefined>
}

function credentialsOf(by: Refreshing, call: CredentialsCall, { accessToken }: UpstreamTokens): Credentials {
  const { tokensIn, refresh } = by
  return {
    accessToken,
    async renew() {
      const next = await refresh(accessToken)
      return next && credentialsOf(by, call, next)
    },
    wants: (scope) => tokensIn.wants(call.ref, accessToken, scope),
    async refused() {
      await tokensIn.drop(call.ref, accessToken, 'the server refuses its token')
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

type RefreshDeps = UpstreamSignInDeps & { readonly tokensIn: StoredTokens }

/** One decision: waits until nobody else refreshes them, and does so. */
async function claimed(deps: RefreshDeps, { ref, request }: CredentialsCall, used: string) {
  const { store, clock, tokensIn } = deps
  for (;;) {
    const stored = await findConnection(store, ref.namespace, ref.connectionId)
    const tokens = stored && tokensIn.of(ref, stored)
    if (stored === undefined || tokens === undefined) return undefined
    if (tokens.accessToken !== used) return tokens
    const { refreshUntil = 0, refreshAfter = 0 } = stored.privatePart
    if (refreshAfter > clock.now()) throw notNow('it failed a moment ago')
    if (refreshUntil > clock.now()) {
      await deps.sockets.wait(refreshPollMs, request)
      if (request.signal.aborted) throw notNow('the client disconnected')
      continue
    }
    const claim = { ...stored.privatePart, refreshUntil: clock.now() + refreshClaimMs }
    const { connection } = stored
    const write = connectionChange(ref, stored, { connection, privatePart: claim })
    return (await store.commit(write)).ok ? refreshNow(deps, ref, tokens) : 'again'
  }
}

/** With the claim held. */
async function refreshNow(deps: RefreshDeps, ref: ConnectionRef, tokens: UpstreamTokens) {
  const { signInKey, clock, tokensIn } = deps
  const used = tokens.accessToken
  // It counts for the connection: the caller who comes first may have no time left, and others wait for it too.
  const fetch = createOAuthFetch(deps.upstream, 'Refreshing the token', await holderOf(deps, ref))
  const result = await refreshTokens(tokens, fetch, clock.now()).catch((error) => {
    if (!(error instanceof SignInProblem)) throw error
    return { kind: 'failed', why: error.message, isUnknownClient: false } as const
  })
  if (!('kind' in result)) {
    const sealed = sealPart('tokens', result, ref, signInKey)
    const isKept = await tokensIn.change(ref, used, ({ refreshUntil: _, refreshAfter: __, ...rest }) => ({
      privatePart: { ...rest, tokens: sealed },
    }))
    // Somebody has signed out or deleted the connection: nobody may use what came too late.
    if (!isKept) tokensIn.revokeLater(ref, result)
    return isKept ? result : undefined
  }
  if (result.kind === 'failed') {
    await tokensIn.change(ref, used, ({ refreshUntil: _, ...rest }) => ({
      privatePart: { ...rest, refreshAfter: clock.now() + refreshRetryMs },
    }))
    throw notNow(result.why)
  }
  const { client, server } = tokens
  if (result.isUnknownClient && client.isRegistered === true) await forgetClient(deps, server.issuer, client)
  await tokensIn.drop(ref, used, result.why)
  return undefined
}

function notNow(why: string): PlatformError {
  return new PlatformError('upstream_error', `The MCP server’s token cannot be refreshed right now: ${why}`)
}
