/** `/signin`: a person signs in to a browser session, with an API key or a sign-in link (contract, 12.1, 12.2). */

import { type Caller, liveCaller } from '../../auth/authenticate.ts'
import { type BrowserSession, formTokenOf, requireFormToken, withCookies } from '../../auth/browser-sessions.ts'
import type { FoundRecord } from '../../auth/expiring-records.ts'
import type { SharedParts } from '../../auth/shared-parts.ts'
import { invalidRequest, PlatformError } from '../../errors.ts'
import { type RateLimit, requireRate } from '../../fairness/rate-limit.ts'
import { readForm } from '../../http/form.ts'
import { isSecureUrl } from '../../http/guard.ts'
import { handlersOf } from '../../http/handler.ts'
import { html } from '../../http/html.ts'
import { impossiblePage, page, redirect, row } from '../../http/html-page.ts'
import { readQuery } from '../../http/query.ts'

/** The record behind a sign-in link (`postern signin-link`). A button on its page uses it up: previews do not. */
export interface LoginLink {
  readonly keyId: string
}

export interface SignInDeps extends SharedParts {
  /** Limits sessions that a user begins: each leaves a record for hours, and a line in the audit log. */
  readonly signIns: RateLimit
}

export const signInHandlers = handlersOf({ signInPage: showSignInPage, signIn })

async function showSignInPage(deps: SignInDeps, request: Request): Promise<Response> {
  const { sessions, base } = deps
  if (!isSecureUrl(base)) return impossiblePage(base)
  const query = readQuery(request.url) // 400
  const link = query.get('link')
  if (link !== undefined) {
    const { userId } = await userOf(deps, await foundLink(deps, link)) // 400
    return linkPage(deps, link, userId)
  }
  const session = await sessions.find(request)
  return session === undefined ? keyPage(`${base}/signin`, query.get('next')) : sessionPage(`${base}/signin`, session)
}

async function signIn(deps: SignInDeps, request: Request): Promise<Response> {
  const { authenticator, sessions, base } = deps
  if (!isSecureUrl(base)) return impossiblePage(base)
  const form = await readForm(request) // 400
  const link = form.one('link')
  if (link !== undefined) {
    requireFormToken(form.one('form'), formTokenOf(deps.signInKey, link, 'link')) // 403
    return startSession(deps, await redeem(deps, request, link), 'link') // 400
  }
  if (form.one('end') !== undefined) {
    const session = await sessions.find(request)
    if (session !== undefined) requireFormToken(form.one('form'), session.formToken('end')) // 403
    // Only the form token, which needs a session here, proves that the page was ours.
    const others = session && (await deps.consoleSessions?.end(request))
    return withCookies(redirect(`${base}/signin`), [await sessions.end(request), others])
  }
  const next = form.one('next')
  const caller = await authenticator.authenticateKey(form.one('key') ?? '', request).catch((thrown) => {
    if (thrown instanceof PlatformError && thrown.code === 'unauthorized') return undefined
    throw thrown
  }) // 429
  return caller === undefined ? keyPage(`${base}/signin`, next, 401) : startSession(deps, caller, 'key', next)
}

async function startSession(deps: SignInDeps, caller: Caller, how: 'key' | 'link', next?: string) {
  const { sessions, audit, base } = deps
  const { keyId, userId, organizationId } = caller
  // The console is for people.
  const consoleSessions = organizationId === undefined ? deps.consoleSessions : undefined
  requireRate(deps.signIns.take(userId), 'This user is signing in too often') // 429
  const cookies = [await sessions.start(keyId), await consoleSessions?.start(keyId)]
  await audit.record('signin.session', { userId, keyId, how })
  return withCookies(redirect(`${base}${pathAfterSignIn(next, consoleSessions !== undefined)}`), cookies)
}

/** Uses a sign-in link up. Throws `invalid_request` if it was used, has expired, or its key was revoked. */
async function redeem(deps: SignInDeps, request: Request, link: string): Promise<Caller> {
  const found = await foundLink(deps, link)
  if (!(await deps.records.take(found, request))) throw spentLink()
  return userOf(deps, found)
}

async function foundLink({ records }: SignInDeps, link: string): Promise<FoundRecord<LoginLink>> {
  const found = await records.find<LoginLink>('login link', link)
  if (found === undefined) throw spentLink()
  return found
}

async function userOf({ directory }: SignInDeps, { value }: FoundRecord<LoginLink>): Promise<Caller> {
  const live = await liveCaller(directory, value.keyId)
  if (live === undefined) throw spentLink()
  return live.caller
}

function spentLink(): PlatformError {
  return invalidRequest('This link was used, or has expired: ask for another one')
}

const setup = 'connect/[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9_-][A-Za-z0-9._-]*/setup'
const nextShape = new RegExp(String.raw`^/(?:${setup}|oauth/authorize|signin/cli)(?:\?[\x21-\x7e]*)?$`)
/** No part is `.` or `..`, which would lead elsewhere. */
const consoleShape = /^\/console(?:\/(?!\.|%2e)[A-Za-z0-9._~%-]+)*(?:\?[\x21-\x7e]*)?$/i

/** The path below the base URL to go on with: a page that needs a session, or else the console, where there is one. */
function pathAfterSignIn(next: string | undefined, hasConsole: boolean): string {
  const isKnown = next !== undefined && (nextShape.test(next) || (hasConsole && consoleShape.test(next)))
  return isKnown && !/[#\\]/.test(next) ? next : hasConsole ? '/console' : '/signin'
}

function keyPage(action: string, next: string | undefined, status = 200): Response {
  const wrong = status === 401 && html`<p class="warning" role="alert">This API key is not valid.</p>`
  return page({
    title: `Sign in to ${new URL(action).host}`,
    status,
    body: html`${wrong}<form method="post" action="${action}">
${next !== undefined && html`<input type="hidden" name="next" value="${next}">`}
<label class="field">API key<input type="password" name="key" required autofocus autocomplete="current-password"></label>
<button class="main">Sign in</button>
</form>
<p>No API key? Ask an operator of ${new URL(action).host} for one, or for a sign-in link.</p>`,
  })
}

function sessionPage(action: string, { caller, formToken }: BrowserSession): Response {
  return page({
    title: 'You are signed in',
    body: html`<dl>${row('User', caller.userId)}</dl>
<form method="post" action="${action}"><input type="hidden" name="form" value="${formToken('end')}">
<button name="end" value="1">Sign out</button></form>
<p>Did a page or a program send you here? Go back to it, and try again there. Otherwise you can close this page.</p>`,
  })
}

function linkPage({ base, signInKey }: SignInDeps, link: string, userId: string): Response {
  return page({
    title: `Sign in as ${userId}?`,
    body: html`<p>This link works once, for ten minutes.</p>
<form method="post" action="${base}/signin"><input type="hidden" name="link" value="${link}">
<input type="hidden" name="form" value="${formTokenOf(signInKey, link, 'link')}"><button class="main">Sign in</button></form>`,
  })
}
