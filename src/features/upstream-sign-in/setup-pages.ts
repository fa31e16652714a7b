/** The pages on which a person connects the server behind a connection. Foreign text stays text. */

import type { Maker } from '../../auth/maker.ts'
import { allowanceOf } from '../../fairness/allowance.ts'
import type { Holder } from '../../fairness/owner.ts'
import { type Html, html } from '../../http/html.ts'
import { page, row } from '../../http/html-page.ts'
import type { ConnectionRef } from '../../model/connection.ts'
import { formTokenField, type InputField, type Scalar } from '../../model/input-fields.ts'
import type { StoredConnection } from '../../storage/connections.ts'
import type { UpstreamTokens } from './tokens.ts'

/** The person of a browser session, or the key that a setup link was made with, for the audit log. */
export type Visitor = Readonly<Partial<Record<'userId' | 'keyId' | 'linkKeyId', string>>>

/** A visit by somebody who may set the connection up: the holder of a ticket, or of a browser session. */
export interface Visit {
  readonly request: Request
  readonly ref: ConnectionRef
  readonly stored: StoredConnection
  /** The page's own URL, ticket included. */
  readonly action: string
  readonly formToken: string
  /** Of the ticket or the session. */
  readonly maker: Maker
  /** The holder that all work for the visitor counts against. */
  readonly holder: Holder
  readonly by: Visitor
}

/** A time as people read it. `time`: milliseconds since 1970. */
export function minuteOf(time: number): string {
  return `${new Date(time).toISOString().slice(0, 16).replace('T', ' ')} UTC`
}

function mcpUrlOf({ stored }: Visit): string {
  return stored.connection.mcpUrl ?? ''
}

function rowsOf({ ref, stored }: Visit, ...more: readonly Html[]): Html {
  const { name } = stored.connection
  return html`<dl>${row('Namespace', ref.namespace)}${row('Connection', ref.connectionId)}
${name !== ref.connectionId && row('Name', name)}${more}</dl>`
}

function form({ action, formToken }: Visit, content: Html): Html {
  return html`<form method="post" action="${action}"><input type="hidden" name="${formTokenField}" value="${formToken}">
${content}</form>`
}

/** `takesInput`: the server also takes values, which may be what is wrong. */
export function setupPage(about: Visit, tokens: UpstreamTokens | undefined, takesInput: boolean): Response {
  const { signedInUntil, wantedScope } = about.stored.privatePart
  const server = row('Server', new URL(mcpUrlOf(about)).host)
  if (tokens === undefined) {
    return page({
      title: 'Connect this server',
      body: html`${rowsOf(about, server)}
<p>The next step asks the server where to sign in. You see the address before you go there.</p>
${form(about, html`<button class="main">Continue</button>${takesInput && changeValues}`)}`,
    })
  }
  return page({
    title: wantedScope === undefined ? 'This server is connected' : 'This server wants more access',
    body: html`${rowsOf(
      about,
      server,
      row('Signed in at', tokens.server.issuer),
      tokens.userId === undefined ? html`` : row('Signed in by', tokens.userId),
      row('Since', minuteOf(tokens.obtainedAt)),
      signedInUntil === undefined ? html`` : row('Until', minuteOf(Date.parse(signedInUntil))),
    )}
${wantedScope !== undefined && html`<p class="warning">A call was refused because it needs more permissions: ${wantedScope}</p>`}
${form(
  about,
  html`<button name="again" value="1"${wantedScope !== undefined && html` class="main"`}>Sign in again</button>
<button name="end" value="1">Sign out</button>`,
)}`,
  })
}

/** Leads to the form for values, where a server may want those instead of a sign-in. */
const changeValues = html`
<button name="values" value="change">Change the values</button>`

/** Milliseconds of an option of a field, and of a character of what it shows. Counted against `ownerTimeShare`. */
const optionMs = 0.001
const characterMs = 0.0003

function msOf({ label, description = '', options }: InputField): number {
  const characters = options.reduce<number>((sum, one) => sum + String(one).length, label.length + description.length)
  return options.length * optionMs + characters * characterMs
}

/** The form for what the server must be told. `values`: what was entered before, by property. */
export function inputPage(
  about: Visit & {
    readonly fields: readonly InputField[]
    readonly values: ReadonlyMap<string, Scalar>
    readonly problem?: string
    readonly status?: number
  },
): Response {
  const { request, stored, fields, values, problem, status = 200 } = about
  allowanceOf(request).spend(fields.reduce((sum, field) => sum + msOf(field), 0))
  const isConnected = stored.connection.status.state === 'connected'
  return page({
    title: isConnected ? 'This server is connected' : 'Set up this connection',
    status,
    request,
    body: html`${rowsOf(about, row('Server', new URL(mcpUrlOf(about)).host))}
${problem !== undefined && html`<p class="warning" role="alert">${problem}</p>`}
${form(
  about,
  html`${fields.map((field) => inputOf(field, values.get(field.property) ?? field.default))}
${isConnected && html`<p>The values that you enter replace the stored ones.</p>`}
<p>Your values are stored encrypted and sent to this server only. Secrets are not shown again.</p>
<button class="main">Save and try</button>`,
)}`,
  })
}

/** One field. The page never has the value of a secret: a person enters it each time. */
function inputOf(field: InputField, value?: Scalar): Html {
  const { formName, label, description, kind, isRequired, isSecret, options } = field
  const note = description !== undefined && html`<small>${description}</small>`
  const required = isRequired && html` required`
  if (kind === 'checkbox') {
    const ticked = value === true && html` checked`
    return html`<label><input type="checkbox" name="${formName}" value="true"${ticked}> ${label}${note}</label>\n`
  }
  if (kind === 'select') {
    const choices = options.map(
      (option) =>
        html`<option value="${String(option)}"${option === value && html` selected`}>${String(option)}</option>`,
    )
    return html`<label class="field">${label}${note}<select name="${formName}"${required}>
<option value="">Choose</option>${choices}</select></label>\n`
  }
  const type = isSecret ? 'password' : kind
  const shown = value !== undefined && !isSecret && html` value="${String(value)}"`
  const step = type === 'number' && html` step="any"`
  return html`<label class="field">${label}${note}
<input type="${type}" name="${formName}"${step}${shown}${required} autocomplete="off"></label>\n`
}

export function enteredPage(about: Visit, wantsSignIn: boolean): Response {
  if (!wantsSignIn) {
    return page({
      title: 'Connected',
      body: html`${rowsOf(about)}<p>The server is connected. You can close this page.</p>`,
    })
  }
  return page({
    title: 'Now sign in',
    body: html`${rowsOf(about)}
<p>Your values are stored. The server still answers 401: it wants somebody to sign in, or a value is wrong.</p>
${form(about, html`<button class="main">Continue to sign in</button>${changeValues}`)}`,
  })
}

export function continuePage(
  about: Visit & {
    readonly issuer: string
    readonly scope: string | undefined
    readonly host: string
    readonly href: string
    /** The remedy that a person has where that server does not know the client. */
    readonly remedy: 'register again' | 'enter another' | undefined
  },
): Response {
  const { issuer, scope, host, href, remedy } = about
  return page({
    title: 'Sign in to this server',
    body: html`${rowsOf(
      about,
      row('Server', mcpUrlOf(about)),
      row('You sign in at', issuer),
      row('Permissions requested', scope ?? 'the server’s default'),
      row('You will be sent back to', host),
    )}
<p>Everybody who can use this connection will act as you on that server.</p>
${
  new URL(href).hostname !== new URL(issuer).hostname &&
  html`<p class="warning">The server sends you to ${new URL(href).host}, but ${new URL(issuer).host} gets the access that you allow there.
Continue only if you know that both belong together.</p>`
}
<p><a class="button" id="continue" href="${href}" rel="noreferrer">Go to ${new URL(href).host}</a></p>
${
  remedy !== undefined &&
  form(
    about,
    html`<p>If the next page says that the client is unknown: ${
      remedy === 'register again'
        ? html`<button name="register" value="again">Register again</button>`
        : html`<button name="client" value="other">Enter another client</button>`
    }</p>`,
  )
}`,
  })
}

export function clientPage(about: Visit, issuer: string, redirectUri: string): Response {
  return page({
    title: 'Register postern at this server',
    body: html`${rowsOf(about, row('Sign-in at', issuer), row('Redirect URI', redirectUri))}
<p>The authorization server does not allow automatic registration. Register a client there with this redirect URI, and
enter what it gives you.</p>
${form(
  about,
  html`<label class="field">Client ID<input type="text" name="client_id" required autocomplete="off"></label>
<label class="field">Client secret, if there is one<input type="password" name="client_secret" autocomplete="off"></label>
<button class="main">Continue</button>`,
)}`,
  })
}

export function signedOutPage(about: Visit): Response {
  return page({ title: 'Signed out', body: html`${rowsOf(about)}<p>Calls fail until somebody signs in again.</p>` })
}
