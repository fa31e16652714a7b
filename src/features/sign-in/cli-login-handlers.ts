/**
 * Logging in on a command line through the browser (contract, 12.4): the command line begins a login, its user allows
 * that on a page, and it fetches a token. Somebody else may begin a login and send the page (RFC 8628, 5.4). So the
 * page says where the login was begun and when to deny it, and the token lasts a day and ends with the user's key.
 */

import { timingSafeEqual } from 'node:crypto'
import { type Authenticated, liveCaller } from '../../auth/authenticate.ts'
import { type BrowserSession, formTokenOf, requireFormToken } from '../../auth/browser-sessions.ts'
import type { FoundRecord } from '../../auth/expiring-records.ts'
import type { SharedParts } from '../../auth/shared-parts.ts'
import { conflict, invalidRequest, notFound, unauthorized } from '../../errors.ts'
import { type RateLimit, requireRate } from '../../fairness/rate-limit.ts'
import { type Form, readForm } from '../../http/form.ts'
import { handlersOf } from '../../http/handler.ts'
import { html } from '../../http/html.ts'
import { impossiblePage, page, redirect, row } from '../../http/html-page.ts'
import { namesInPath } from '../../http/path.ts'
import { readQuery, refuseQuery } from '../../http/query.ts'
import { noStoreJson } from '../../http/respond.ts'
import { cliLoginSeconds } from '../../limits.ts'
import type { CliLoginMade, CliLoginState } from '../../model/cli-login.ts'

/** `address`: of the command line. `keyId`: of the user who allowed it; null if it was denied. */
interface CliLogin {
  readonly address: string
  readonly keyId?: string | null
}

export interface CliLoginDeps extends SharedParts {
  /** A token for 24 hours. `requireAllowed` throws if its user's key has ended meanwhile. */
  readonly mintForDay: (of: Authenticated, requireAllowed: () => Promise<unknown>) => Promise<string>
  /** Limits logins per address. */
  readonly begins: RateLimit
  /** Whether clients may sign in here. */
  readonly isPossible: boolean
}

export const cliLoginHandlers = handlersOf({ startCliLogin, pollCliLogin, cliLoginPage, decideCliLogin })

async function startCliLogin(deps: CliLoginDeps, request: Request): Promise<Response> {
  const { sockets, base, records } = deps
  refuseQuery(request.url) // 400
  if (!deps.isPossible)
    throw conflict(
      'Nobody can log in here, because postern is reached over plain HTTP or runs with --no-sign-in: use an API key',
    )
  const address = sockets.addressOf(request)
  requireRate(deps.begins.take(address), 'Too many logins were begun from this address') // 429
  const login = await records.add(purpose, { address } satisfies CliLogin, cliLoginSeconds)
  return answer({ sessionId: sessionIdOf(deps, login), authUrl: `${base}/signin/cli?login=${login}` })
}

async function pollCliLogin(deps: CliLoginDeps, request: Request): Promise<Response> {
  refuseQuery(request.url) // 400
  const found = await begun(deps, namesInPath(request.url)[3] ?? '') // 404
  const { keyId } = found.value
  if (keyId === undefined) return answer({ status: 'pending' })
  if (keyId === null) return answer({ status: 'error', message: 'The login was denied in the browser' })
  // Once: a second poll at the same time finds it gone.
  if (!(await deps.records.take(found, request))) throw missing() // 404
  const apiKey = await deps.mintForDay(await callerOf(deps, keyId), () => callerOf(deps, keyId)) // 401, 503
  return answer({ status: 'success', apiKey })
}

async function cliLoginPage(deps: CliLoginDeps, request: Request): Promise<Response> {
  const { sessions, sockets, base } = deps
  if (!deps.isPossible) return impossiblePage(deps.base)
  const login = readQuery(request.url).get('login') ?? '' // 400
  const session = await sessions.find(request)
  if (session === undefined) return toSignIn(deps, login)
  const { value } = await undecided(deps, login) // 400
  return decisionPage(base, login, session, { begunAt: value.address, address: sockets.addressOf(request) })
}

async function decideCliLogin(deps: CliLoginDeps, request: Request): Promise<Response> {
  const { sessions, audit, records } = deps
  if (!deps.isPossible) return impossiblePage(deps.base)
  const form = await readForm(request) // 400
  const login = form.one('login') ?? ''
  const session = await sessions.find(request)
  if (session === undefined) return toSignIn(deps, login)
  requireFormToken(form.one('form'), session.formToken(`cli login ${login}`)) // 403
  const isAllowed = readDecision(form) // 400
  const found = await undecided(deps, login) // 400
  const { keyId, userId } = session.caller
  const decided: CliLogin = { ...found.value, keyId: isAllowed ? keyId : null }
  if (!(await records.replace(purpose, found, decided))) throw over() // 400
  const event = isAllowed ? 'signin.cli' : 'signin.cli.denied'
  await audit.record(event, { userId, keyId, address: found.value.address })
  return donePage(isAllowed)
}

const purpose = 'cli login'

/** For the command line alone: people who see the page, and so the login, cannot fetch the token. */
function sessionIdOf({ signInKey }: CliLoginDeps, login: string): string {
  return `${login}.${formTokenOf(signInKey, login, 'cli login poll')}`
}

/** The login of a command line. Throws `not_found`. */
async function begun(deps: CliLoginDeps, sessionId: string): Promise<FoundRecord<CliLogin>> {
  const [login = ''] = sessionId.split('.')
  const found = await deps.records.find<CliLogin>(purpose, login)
  const [given, wanted] = [Buffer.from(sessionId), Buffer.from(sessionIdOf(deps, login))]
  if (found === undefined || given.length !== wanted.length || !timingSafeEqual(given, wanted)) throw missing()
  return found
}

/** A login that nobody has decided on. Throws `invalid_request`, with a text for the user. */
async function undecided({ records }: CliLoginDeps, login: string): Promise<FoundRecord<CliLogin>> {
  const found = await records.find<CliLogin>(purpose, login)
  if (found === undefined || found.value.keyId !== undefined) throw over()
  return found
}

function over() {
  return invalidRequest('This login has expired, or was answered already: run the login command again')
}

function missing() {
  return notFound(
    'There is no such login: it has expired, or its token was fetched already; run the login command again',
  )
}

function toSignIn({ base }: CliLoginDeps, login: string): Response {
  const next = `/signin/cli?${new URLSearchParams({ login })}`
  return redirect(`${base}/signin?${new URLSearchParams({ next })}`)
}

/** The user of a key that still works. Throws `unauthorized`. */
async function callerOf({ directory }: CliLoginDeps, keyId: string): Promise<Authenticated> {
  const live = await liveCaller(directory, keyId)
  if (live === undefined) throw unauthorized()
  return live
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

/** The page warns (RFC 8628, 5.4), and shows the address of the command line, `begunAt`, beside that of the browser. */
function decisionPage(
  base: string,
  login: string,
  session: BrowserSession,
  { begunAt, address }: { readonly begunAt: string; readonly address: string },
) {
  const { userId, operator } = session.caller
  const formToken = session.formToken(`cli login ${login}`)
  return page({
    title: 'Log in on a command line?',
    body: html`<dl>
${row('Acts as', operator ? `${userId}, an operator` : userId, html`<a href="${base}/signin">Not you?</a>`)}
${row('Access', `everything that ${userId} can do, for 24 hours`)}
${row('Begun at', begunAt)}
</dl>
${
  begunAt !== address &&
  html`<p class="warning">That is not your address (${address}). Deny, unless you ran the command on another machine.</p>`
}
<p class="warning">Allow this only if you have just run a login command yourself. If somebody sent you to this page, deny:
they would act as you.</p>
<form method="post" action="${base}/signin/cli">
<input type="hidden" name="login" value="${login}"><input type="hidden" name="form" value="${formToken}">
<button class="main" name="decision" value="allow">Allow</button>
<button name="decision" value="deny">Deny</button>
</form>`,
  })
}

function donePage(isAllowed: boolean): Response {
  return page({
    title: isAllowed ? 'You are logged in on the command line' : 'The login was denied',
    body: html`<p>You can close this page.</p>`,
  })
}
