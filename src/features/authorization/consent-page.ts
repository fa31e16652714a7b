/** The consent page: who asks, for what, for whom, and where the answer goes. */

import { html } from '../../http/html.ts'
import { page } from '../../http/page.ts'
import type { Client } from './clients.ts'
import { formTarget, isLoopbackUri } from './redirect-uris.ts'

/** Days for which access can be allowed. */
export const grantDays = [1, 30, 90] as const
const daysAtFirst = 30

export interface Consent {
  /** Where the form goes: the request's own URL, query included. */
  readonly action: string
  readonly formToken: string
  readonly client: Client
  readonly redirectUri: string
  readonly namespace: string
  readonly connectionId: string
  readonly userId: string
  /** Undefined if they are not known; then their names are typed. */
  readonly tools: readonly string[] | undefined
}

export function consentPage(consent: Consent): Response {
  const { action, formToken, client, redirectUri, namespace, connectionId, userId, tools } = consent
  const row = (name: string, value: unknown) => html`<div><dt>${name}</dt><dd>${String(value)}</dd></div>`
  return page({
    title: `${client.name ?? client.host ?? 'A program'} asks for access`,
    body: html`<dl>
${row('Client', client.host ?? `${client.name ?? 'without a name'} (not verified)`)}
${row('Connection', `${namespace}/${connectionId}`)}
${row('Acts as', userId)}
${row('Goes back to', targetOf(redirectUri))}
</dl>
${
  isLoopbackUri(redirectUri) &&
  html`<p class="warning">The answer goes to a program on your own machine. Any program there can say that it is
“${client.name ?? client.host ?? 'this one'}”: allow it only if you have just started it.</p>`
}
<form method="post" action="${action}">
<input type="hidden" name="form" value="${formToken}">
<fieldset><legend>What it may do</legend>
<label><input type="radio" name="access" value="all" required${tools === undefined || tools.length === 0 ? html` checked` : undefined}> Use all tools</label>
<label><input type="radio" name="access" value="some"> Use only these tools:</label>
${
  tools === undefined || tools.length === 0
    ? html`<label class="field">Names of tools, separated by spaces<input type="text" name="tool"></label>
<input type="hidden" name="typed" value="1">`
    : tools.map((tool) => html`<label><input type="checkbox" name="tool" value="${tool}"> ${tool}</label>`)
}
</fieldset>
<fieldset><legend>For how long</legend>
${grantDays.map(
  (days) =>
    html`<label><input type="radio" name="days" value="${days}"${days === daysAtFirst && html` checked`}> ${days === 1 ? '1 day' : `${days} days`}</label>`,
)}
</fieldset>
<button class="main" name="decision" value="allow">Allow</button>
<button name="decision" value="deny" formnovalidate>Deny</button>
</form>`,
    formTargets: [formTarget(redirectUri)],
  })
}

/** The host of a web address, or the scheme that opens an application. */
function targetOf(redirectUri: string): string {
  const { protocol, host } = new URL(redirectUri)
  return protocol === 'https:' || protocol === 'http:' ? host : `an application (${protocol})`
}
