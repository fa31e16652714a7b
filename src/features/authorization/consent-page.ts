/** The consent page: who asks, for what, for whom, and where the answer goes. */

import type { RequestContext } from '../../auth/authorizer.ts'
import type { BrowserSession } from '../../auth/browser-sessions.ts'
import type { Work } from '../../fairness/turns.ts'
import { type Html, html } from '../../http/html.ts'
import { page, row } from '../../http/html-page.ts'
import type { ShownTool } from '../../model/mcp.ts'
import type { AskedResource } from './asked-resource.ts'
import type { Client } from './oauth-deps.ts'
import { formTarget, isLoopbackUri } from './redirect-uris.ts'

export const grantDays = [1, 30, 90] as const
const daysAtFirst = 30

/** A valid request of a client for one resource, in the browser of somebody who has signed in. */
export interface Asked {
  readonly client: Client
  readonly redirectUri: string
  readonly challenge: string
  readonly state: string | undefined
  readonly session: BrowserSession
  readonly context: RequestContext
  readonly resource: AskedResource
}

/** Cost of a character of what a tool says of itself, in the unit of `sliceCost`: one may be shown as eight. */
const saidCharacterCost = 12

/** The tools to choose from, as work in steps: what a thousand say of themselves may be a megabyte. */
export function* toolChoices(tools: readonly ShownTool[]): Work<Html[]> {
  const choices: Html[] = []
  for (const { name, claims } of tools) {
    yield claims.reduce((sum, { description }) => sum + description.length, name.length) * saidCharacterCost
    const said = claims.map(({ description, risk }) => html`<small>${description} (${risk})</small>`)
    choices.push(html`<label><input type="checkbox" name="tool" value="${name}"> ${name}${said}</label>`)
  }
  return choices
}

/** `tools`: undefined if unknown; then users type names. `problem`: with the last choice; then the page is 400. */
export function consentPage(base: string, asked: Asked, tools?: readonly Html[], problem?: string): Response {
  const { client, redirectUri, session, context, resource } = asked
  const { namespace, connectionId, view, connection } = resource
  const state = connection?.stored.connection.status.state
  const action = `${base}/oauth/authorize${searchOf(context.request)}`
  const isSetUp = state !== 'auth_required' && state !== 'input_required'
  const path = `${namespace}/${connectionId}`
  const endpoint = view === undefined ? `${namespace}, all connections` : `${namespace}, view ${view}`
  const name = client.name ?? client.host ?? 'this program'
  return page({
    title: `${client.name ?? client.host ?? 'A program'} asks for access`,
    status: problem === undefined ? 200 : 400,
    request: context.request,
    body: html`<dl>
${row('Client', client.host ?? `${client.name ?? 'without a name'} (not verified)`)}
${connection === undefined ? row('Namespace', endpoint) : row('Connection', path)}
${row('Acts as', session.caller.userId, html`<a href="${base}/signin">Not you?</a>`)}
${row('You will be sent back to', targetOf(redirectUri))}
</dl>
${
  isLoopbackUri(redirectUri) &&
  html`<p class="warning">Any program on this computer can call itself “${name}”. Allow it only if you have just started
to connect it.</p>`
}
${
  !isSetUp &&
  html`<p class="warning">The server behind this connection is not set up yet: calls fail until somebody has signed in to
it or entered what it needs. <a href="${base}/connect/${path}/setup">Set it up</a></p>`
}
${problem !== undefined && html`<p class="warning" role="alert">${problem}</p>`}
<form method="post" action="${action}">
<input type="hidden" name="form" value="${session.formToken(formOf(asked))}">
<fieldset><legend>What it may do</legend>
<label><input type="radio" name="access" value="all" required> Use all tools</label>
<label><input type="radio" name="access" value="some"> Use only these tools:</label>
${
  tools === undefined || tools.length === 0
    ? html`<label class="field">Names of tools, separated by spaces<input type="text" name="tool"></label>
<input type="hidden" name="typed" value="1">`
    : tools
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

/** A form is good for the very request and resource that its page showed. */
export function formOf({ context: { request }, resource: { madeAt, connection } }: Asked): string {
  return `consent\0${searchOf(request)}\0${madeAt}\0${connection?.stored.connection.mcpUrl}`
}

/** The query of a request as it came, with its `?`. */
export function searchOf({ url }: Request): string {
  const start = url.indexOf('?')
  return start < 0 ? '' : url.slice(start)
}

/** The host of a web address, or the scheme that opens an application. */
function targetOf(redirectUri: string): string {
  const { protocol, host } = new URL(redirectUri)
  return protocol === 'https:' || protocol === 'http:' ? host : `an application (${protocol})`
}
