/** `/console/session`: the session of a browser at the console (contract, 23.2). */

import { withCookies } from '../../auth/browser-sessions.ts'
import type { ConsoleSession, ConsoleSessions } from '../../auth/console-sessions.ts'
import type { SharedParts } from '../../auth/shared-parts.ts'
import { notFound, PlatformError, unauthorized } from '../../errors.ts'
import { allowanceOf } from '../../fairness/allowance.ts'
import { type RateLimit, requireRate } from '../../fairness/rate-limit.ts'
import { readOptionalBody } from '../../http/body.ts'
import { isSecureUrl } from '../../http/guard.ts'
import { handlersOf } from '../../http/handler.ts'
import { readFlag, readQuery, refuseQuery } from '../../http/query.ts'
import { noStoreJson } from '../../http/respond.ts'
import { type ConsoleSessionBody, StartConsoleSession } from '../../model/console.ts'
import { validatorOf } from '../../schema/check.ts'

/** A user signs in once for the console and for the other pages, such as those that set connections up. */
export interface ConsoleDeps extends SharedParts {
  readonly signIns: RateLimit
}

export const consoleSessionHandlers = handlersOf({ startConsoleSession, getConsoleSession, endConsoleSession })

const startShape = validatorOf(StartConsoleSession)

async function startConsoleSession(deps: ConsoleDeps, request: Request): Promise<Response> {
  const sessions = sessionsOf(deps)
  refuseQuery(request.url) // 400
  if (!isSecureUrl(deps.base))
    throw new PlatformError(
      'forbidden',
      'The console works only if the base URL is https, or names this machine (localhost): set --base-url to an https URL',
    )
  await allowanceOf(request).belongsToStranger() // 429
  const { key } = await readOptionalBody(request, startShape) // 400
  const caller = await deps.authenticator.authenticateKey(key, request) // 401, 429
  if (caller.organizationId !== undefined) throw unauthorized()
  requireRate(deps.signIns.take(caller.userId), 'This user is signing in too often') // 429
  const cookie = await sessions.start(caller.keyId)
  const others = await deps.sessions.start(caller.keyId)
  await deps.audit.record('signin.session', { userId: caller.userId, keyId: caller.keyId, how: 'console' })
  const started = new Request(request.url, { headers: { cookie: cookie.split(';')[0] as string } })
  const session = await sessions.find(started)
  if (session === undefined) throw unauthorized()
  return sessionResponse(session, [cookie, others])
}

async function getConsoleSession(deps: ConsoleDeps, request: Request): Promise<Response> {
  const sessions = sessionsOf(deps)
  refuseQuery(request.url) // 400
  // Another page cannot read the answer; it learns nothing from sending this.
  const session = request.headers.get('sec-fetch-site') === 'same-origin' ? await sessions.find(request) : undefined
  await (session === undefined
    ? allowanceOf(request).belongsToStranger()
    : allowanceOf(request).belongsTo(session.caller))
  if (session === undefined) throw unauthorized()
  return sessionResponse(session)
}

async function endConsoleSession(deps: ConsoleDeps, request: Request): Promise<Response> {
  const sessions = sessionsOf(deps)
  const isEverywhere = readFlag(readQuery(request.url, ['everywhere']), 'everywhere') === true // 400
  const session = await sessions.authenticate(request) // 401
  if (session === undefined) throw unauthorized()
  await allowanceOf(request).belongsTo(session.caller) // 429
  const { userId, keyId } = session.caller
  const cookies = [await sessions.end(request), await deps.sessions.end(request)]
  if (isEverywhere) await sessions.endAll(session.caller)
  await deps.audit.recordDone('signin.ended', { userId, keyId, everywhere: isEverywhere })
  return withCookies(new Response('{"success":true}', { headers: noStoreJson }), cookies)
}

/** Throws 404 where there is no console. */
function sessionsOf({ consoleSessions }: ConsoleDeps): ConsoleSessions {
  if (consoleSessions === undefined) throw notFound()
  return consoleSessions
}

async function sessionResponse(
  { caller, directory, csrf, expiresAt }: ConsoleSession,
  cookies: readonly string[] = [],
) {
  const body: ConsoleSessionBody = {
    userId: caller.userId,
    operator: caller.operator,
    key: { id: caller.keyId, name: (await directory.apiKey(caller.keyId))?.name ?? null },
    csrf,
    expiresAt: new Date(expiresAt).toISOString(),
  }
  return withCookies(new Response(JSON.stringify(body), { headers: noStoreJson }), cookies)
}
