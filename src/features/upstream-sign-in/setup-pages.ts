/** The pages on which a person connects the server behind a connection. Foreign text stays text. */

import type { ConnectionRef } from '../../auth/authorize.ts'
import { type Html, html } from '../../http/html.ts'
import { page } from '../../http/page.ts'
import { formTokenField, type InputField, type Scalar } from '../../model/input-fields.ts'
import type { StoredConnection } from '../../storage/connections.ts'
import type { UpstreamTokens } from './tokens.ts'

interface About {
  readonly ref: ConnectionRef
  /** Where the form goes: the page's own URL. */
  readonly action: string
  readonly formToken: string
}

const row = (name: string, value: string) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`

function rowsOf({ ref }: Pick<About, 'ref'>, ...more: readonly Html[]): Html {
  return html`<dl>${row('Namespace', ref.namespace)}${row('Connection', ref.connectionId)}${more}</dl>`
}

function form({ action, formToken }: About, content: Html): Html {
  return html`<form method="post" action="${action}"><input type="hidden" name="${formTokenField}" value="${formToken}">
${content}</form>`
}

export function setupPage(
  about: About & {
    readonly mcpUrl: string
    readonly tokens: UpstreamTokens | undefined
    /** Scopes that the server wants besides those of its token. */
    readonly wantedScope: string | undefined
  },
): Response {
  const { mcpUrl, tokens, wantedScope } = about
  const server = row('Server', new URL(mcpUrl).host)
  if (tokens === undefined) {
    return page({
      title: 'Connect this server',
      body: html`${rowsOf(about, server)}
<p>The next step asks the server where to sign in. You see the address before you go there.</p>
${form(about, html`<button class="main">Go on</button>`)}`,
    })
  }
  const since = new Date(tokens.obtainedAt).toISOString()
  return page({
    title: wantedScope === undefined ? 'This server is connected' : 'This server wants more access',
    body: html`${rowsOf(about, server, row('Signed in at', tokens.server.issuer), row('Since', since))}
${wantedScope !== undefined && html`<p class="warning">A call was refused. The server wants: ${wantedScope}</p>`}
${form(
  about,
  html`<button${wantedScope !== undefined && html` class="main"`}>Sign in again</button>
<button name="end" value="1">Sign out</button>`,
)}`,
  })
}

/** The form for what the server must be told. `values`: what was entered before, by property. */
export function inputPage(
  about: About & {
    readonly stored: Pick<StoredConnection, 'connection'>
    readonly fields: readonly InputField[]
    readonly values: ReadonlyMap<string, Scalar>
    readonly problem?: string
    readonly status?: number
  },
): Response {
  const { stored, fields, values, problem, status = 200 } = about
  return page({
    title: 'Set this server up',
    status,
    body: html`${rowsOf(about, row('Server', new URL(stored.connection.mcpUrl ?? '').host))}
${problem !== undefined && html`<p class="warning" role="alert">${problem}</p>`}
${form(
  about,
  html`${fields.map((field) => inputOf(field, values.get(field.property) ?? field.default))}
<p>What you enter is kept sealed, is sent to this server alone, and is not shown again.</p>
<button class="main">Save and try</button>`,
)}`,
  })
}

/** One field. What is secret is asked for anew each time, and never in the page. */
function inputOf({ name, label, description, kind, isRequired, isSecret, options }: InputField, value?: Scalar): Html {
  const note = description !== undefined && html`<small>${description}</small>`
  const required = isRequired && html` required`
  if (kind === 'checkbox') {
    const ticked = value === true && html` checked`
    return html`<label><input type="checkbox" name="${name}" value="true"${ticked}> ${label}${note}</label>\n`
  }
  if (kind === 'select') {
    const choices = options.map(
      (option) =>
        html`<option value="${String(option)}"${option === value && html` selected`}>${String(option)}</option>`,
    )
    return html`<label class="field">${label}${note}<select name="${name}"${required}>
<option value="">Choose</option>${choices}</select></label>\n`
  }
  const type = isSecret ? 'password' : kind
  const shown = value !== undefined && !isSecret && html` value="${String(value)}"`
  const step = type === 'number' && html` step="any"`
  return html`<label class="field">${label}${note}
<input type="${type}" name="${name}"${step}${shown}${required} autocomplete="off"></label>\n`
}

export function enteredPage(about: About, wantsSignIn: boolean): Response {
  if (!wantsSignIn) {
    return page({
      title: 'Connected',
      body: html`${rowsOf(about)}<p>The server is connected. You can close this page.</p>`,
    })
  }
  return page({
    title: 'Now sign in',
    body: html`${rowsOf(about)}
<p>What you entered is kept. The server also wants somebody to sign in.</p>
${form(about, html`<button class="main">Go on</button>`)}`,
  })
}

export function continuePage(
  about: About & {
    readonly mcpUrl: string
    readonly issuer: string
    readonly scope: string | undefined
    readonly host: string
    readonly href: string
    /** The authorization server has registered a client of ours, which it may have forgotten. */
    readonly canRegisterAgain: boolean
  },
  headers: Readonly<Record<string, string>>,
): Response {
  const { mcpUrl, issuer, scope, host, href, canRegisterAgain } = about
  return page({
    title: 'Sign in to this server',
    body: html`${rowsOf(
      about,
      row('Server', mcpUrl),
      row('You sign in at', issuer),
      row('It is asked for', scope ?? 'what it gives without a scope'),
      row('Then you come back to', host),
    )}
<p>Whoever may use this connection acts as you at that server from then on.</p>
<p><a class="button" id="continue" href="${href}" rel="noreferrer">Go to ${new URL(href).host}</a></p>
${
  canRegisterAgain &&
  form(
    about,
    html`<p>If that page says that it does not know this client, <button name="register" value="again">register
again</button></p>`,
  )
}`,
    headers,
  })
}

export function clientPage(
  about: About & { readonly mcpUrl: string; readonly issuer: string; readonly redirectUri: string },
): Response {
  const { issuer, redirectUri } = about
  return page({
    title: 'This server wants a registered client',
    body: html`${rowsOf(about, row('Sign-in at', issuer), row('Redirect URI', redirectUri))}
<p>The authorization server lets no program register itself. Register a client there with this redirect URI, and enter
what it gives you.</p>
${form(
  about,
  html`<label class="field">Client ID<input type="text" name="client_id" required autocomplete="off"></label>
<label class="field">Client secret, if there is one<input type="password" name="client_secret" autocomplete="off"></label>
<button class="main">Go on</button>`,
)}`,
  })
}

export function signedOutPage(about: About): Response {
  return page({ title: 'Signed out', body: html`${rowsOf(about)}<p>Calls need somebody to sign in again.</p>` })
}

export function impossiblePage(about: About): Response {
  return page({
    title: 'Nobody can sign in here',
    status: 409,
    body: html`${rowsOf(about)}
<p>This platform is reached over plain HTTP, and a sign-in would show its tokens to the network. The operator can set an
https address with <code>--base-url</code>.</p>`,
  })
}
