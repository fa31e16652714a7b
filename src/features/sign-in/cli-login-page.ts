/** The page on which a user allows a login on a command line, and the one that says it is done. */

import type { Caller } from '../../auth/authenticate.ts'
import { html } from '../../http/html.ts'
import { page, row } from '../../http/html-page.ts'

export interface CliLoginPage {
  /** The base URL without a trailing slash. */
  readonly base: string
  readonly formToken: string
  readonly login: string
  readonly caller: Caller
  /** The address of the command line. */
  readonly begunAt: string
  /** That of the browser. */
  readonly address: string
}

/**
 * Somebody else may have begun the login, to act as whoever allows it (RFC 8628, 5.4): the page says so, and shows what
 * the user can compare.
 */
export function cliLoginPage({ base, formToken, login, caller, begunAt, address }: CliLoginPage): Response {
  const { userId, operator } = caller
  return page({
    title: 'Log in on a command line?',
    body: html`<dl>
${row('Acts as', operator ? `${userId}, an operator` : userId, html`<a href="${base}/signin">Not you?</a>`)}
${row('May do', `all that ${userId} may, for 24 hours`)}
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

export function cliLoginDone(isAllowed: boolean): Response {
  return page({
    title: isAllowed ? 'You are logged in on the command line' : 'The login was denied',
    body: html`<p>You can close this page.</p>`,
  })
}
