/**
 * Logging in on a command line through the browser (door contract, 8.4): the command line begins a login, its user
 * allows that on a page, and it fetches a token. As a device authorization (RFC 8628, 5.4), this can be turned against
 * the user: somebody else begins a login and sends the page. So the page says where the login was begun and when to
 * deny it, and what it gives away is a token that lasts a day and ends with the user's key.
 */

import { type Authenticated, callerOfKey, isLive } from '../../auth/authenticate.ts'
import { type BrowserSessions, requireFormToken } from '../../auth/browser-sessions.ts'
import type { Directory } from '../../auth/directory.ts'
import { conflict, invalidRequest, unauthorized } from '../../errors.ts'
import { type RateLimit, requireRate } from '../../fairness/rate-limit.ts'
import type { ClientSockets } from '../../http/client-sockets.ts'
import { type Form, readForm } from '../../http/form.ts'
import type { Handlers } from '../../http/handler.ts'
import { redirect } from '../../http/html-page.ts'
import { namesInPath } from '../../http/path.ts'
import { readQuery, refuseQuery } from '../../http/query.ts'
import { noStoreJson } from '../../http/respond.ts'
import type { CliLoginMade, CliLoginState } from '../../model/cli-login.ts'
import type { Audit } from '../../ops/audit-log.ts'
import { cliLoginDone, cliLoginPage } from './cli-login-page.ts'
import { type CliLogins, type CliLoginsOptions, createCliLogins } from './cli-logins.ts'
import { impossiblePage } from './sign-in-handlers.ts'

export interface CliLoginDeps extends CliLoginsOptions {
  readonly directory: Directory
  readonly sessions: BrowserSessions
  /** A token for 24 hours. `requireAllowed` throws if its user's key has ended meanwhile. */
  readonly mintForDay: (of: Authenticated, requireAllowed: () => Promise<unknown>) => Promise<string>
  /** Limits logins per address. */
  readonly begins: RateLimit
  readonly sockets: Pick<ClientSockets, 'addressOf'>
  /** Whether clients may sign in here. */
  readonly isPossible: boolean
  readonly audit: Audit
  /** The base URL, without a slash at its end. */
  readonly base: string
}

interface Parts extends CliLoginDeps {
  readonly logins: CliLogins
}

type CliLoginHandlers = Pick<Handlers, 'startCliLogin' | 'pollCliLogin' | 'cliLoginPage' | 'decideCliLogin'>

export function cliLoginHandlers(deps: CliLoginDeps): CliLoginHandlers {
  const parts: Parts = { ...deps, logins: createCliLogins(deps) }
  return {
    startCliLogin: (request) => startCliLogin(parts, request),
    pollCliLogin: (request) => pollCliLogin(parts, request),
    cliLoginPage: (request) => showCliLoginPage(parts, request),
    decideCliLogin: (request) => decideCliLogin(parts, request),
  }
}

async function startCliLogin(deps: Parts, request: Request): Promise<Response> {
  const { sockets, base, logins } = deps
  refuseQuery(request.url) // 400
  if (!deps.isPossible)
    throw conflict('Nobody can log in here: the platform is reached over plain HTTP, or runs with --no-sign-in')
  const address = sockets.addressOf(request)
  requireRate(deps.begins.take(address), 'Too many logins were begun from this address') // 429
  const { login, sessionId } = await logins.begin(address)
  return answer({ sessionId, authUrl: `${base}/signin/cli?login=${login}` })
}

async function pollCliLogin(deps: Parts, request: Request): Promise<Response> {
  const { logins } = deps
  refuseQuery(request.url) // 400
  const found = await logins.find(namesInPath(request.url)[3] ?? '') // 404
  const { keyId } = found.value
  if (keyId === undefined) return answer({ status: 'pending' })
  if (keyId === null) return answer({ status: 'error', message: 'The login was denied in the browser' })
  // Once: a second poll at the same time finds it gone.
  await logins.take(found) // 404
  const apiKey = await deps.mintForDay(await callerOf(deps, keyId), () => callerOf(deps, keyId)) // 401, 503
  return answer({ status: 'success', apiKey })
}

async function showCliLoginPage(deps: Parts, request: Request): Promise<Response> {
  const { sessions, sockets, base, logins } = deps
  if (!deps.isPossible) return impossiblePage()
  const login = readQuery(request.url).get('login') ?? '' // 400
  const session = await sessions.find(request)
  if (session === undefined) return toSignIn(deps, login)
  const { value } = await logins.undecided(login) // 400
  return cliLoginPage({
    action: `${base}/signin/cli`,
    signInUrl: `${base}/signin`,
    formToken: session.formToken(`cli login ${login}`),
    login,
    caller: session.caller,
    begunAt: value.address,
    address: sockets.addressOf(request),
  })
}

async function decideCliLogin(deps: Parts, request: Request): Promise<Response> {
  const { sessions, audit, logins } = deps
  if (!deps.isPossible) return impossiblePage()
  const form = await readForm(request) // 400
  const login = form.one('login') ?? ''
  const session = await sessions.find(request)
  if (session === undefined) return toSignIn(deps, login)
  requireFormToken(form.one('form'), session.formToken(`cli login ${login}`)) // 403
  const isAllowed = readDecision(form) // 400
  const found = await logins.undecided(login) // 400
  const { keyId, userId } = session.caller
  await logins.decide(found, isAllowed ? keyId : null) // 400
  const event = isAllowed ? 'signin.cli' : 'signin.cli.denied'
  await audit.record(event, { userId, keyId, address: found.value.address })
  return cliLoginDone(isAllowed)
}

function toSignIn(deps: Parts, login: string): Response {
  const { base } = deps
  const next = `/signin/cli?${new URLSearchParams({ login })}`
  return redirect(`${base}/signin?${new URLSearchParams({ next })}`)
}

/** The user of a key that still works. Throws `unauthorized`. */
async function callerOf(deps: Parts, keyId: string): Promise<Authenticated> {
  const directory = await deps.directory.current()
  const key = await directory.apiKey(keyId)
  if (!isLive(key)) throw unauthorized()
  return { caller: callerOfKey(key), directory }
}

function answer(body: CliLoginMade | CliLoginState): Response {
  return new Response(JSON.stringify(body), { headers: noStoreJson })
}

/** Throws `invalid_request`. */
function readDecision(form: Form): boolean {
  const decision = form.one('decision')
  if (decision !== 'allow' && decision !== 'deny') throw invalidRequest('decision: must be allow or deny')
  return decision === 'allow'
}
