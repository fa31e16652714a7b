/**
 * Refreshes the tokens of a connection: once for all calls that wait, in whichever process. The refresh is claimed in
 * the store, and the new tokens are durable before anybody uses them (sign-in contract, 1.6).
 */

import { sealPart } from '../../auth/sealed-parts.ts'
import { PlatformError } from '../../errors.ts'
import type { Holder } from '../../fairness/owner.ts'
import type { ConnectionRef } from '../../model/connection.ts'
import { connectionChange, findConnection, type StoredConnection } from '../../storage/connections.ts'
import { decideAgain } from '../../storage/decide-again.ts'
import { forgetClient, type UpstreamSignInDeps } from './oauth-client.ts'
import { createOAuthFetch, SignInProblem } from './oauth-fetch.ts'
import type { StoredTokens } from './stored-tokens.ts'
import { refreshTokens, type UpstreamTokens } from './tokens.ts'

/** Contract (sign-in 1.6): time for which one process refreshes a connection's tokens, and others wait. Past it: another one tries. */
export const refreshClaimMs = 15_000
/** Contract (sign-in 1.6): pause after a refresh that failed for now. Past it: the next call tries again. */
export const refreshRetryMs = 5_000

/** Time between looks at a refresh that another process makes. Past it: the next look. */
const refreshPollMs = 100

export interface CredentialsCall {
  readonly ref: ConnectionRef
  readonly stored: StoredConnection
  readonly holder: Holder
  /** Ends a wait when its client disconnects. */
  readonly request: Request
}

type RefreshDeps = UpstreamSignInDeps & { readonly tokensIn: StoredTokens }

/** Finds the tokens after those with the access token `used`; undefined if there are none any more. */
export function createRefresh(deps: RefreshDeps) {
  /** Refreshes in progress in this process, by connection. */
  const refreshing = new Map<string, Promise<UpstreamTokens | undefined>>()

  return (call: CredentialsCall, used: string): Promise<UpstreamTokens | undefined> => {
    const name = `${call.ref.namespace}/${call.ref.connectionId} ${used}`
    const running =
      refreshing.get(name) ??
      decideAgain('the connection', () => claimed(deps, call, used)).finally(() => refreshing.delete(name))
    refreshing.set(name, running)
    return running
  }
}

/** One decision: waits until nobody else refreshes them, and does so. */
async function claimed(deps: RefreshDeps, { ref, holder, request }: CredentialsCall, used: string) {
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
    return (await store.commit(write)).ok ? refreshNow(deps, ref, tokens, holder) : 'again'
  }
}

/** With the claim held. */
async function refreshNow(deps: RefreshDeps, ref: ConnectionRef, tokens: UpstreamTokens, holder: Holder) {
  const { signInKey, clock, tokensIn } = deps
  const used = tokens.accessToken
  const fetch = createOAuthFetch(deps.upstream, 'Refreshing the token', holder)
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
  return new PlatformError('upstream_error', `The upstream’s token cannot be refreshed right now: ${why}`)
}
