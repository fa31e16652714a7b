/**
 * The pages on which people sign in and consent: HTML and one style sheet. No script, nothing loaded, never framed,
 * never cached (sign-in contract, 2.3).
 */

import { createHash } from 'node:crypto'
import { Html, html } from './html.ts'

const style = `
:root { color-scheme: light dark; }
* { box-sizing: border-box; }
body { font: 17px/1.5 system-ui, sans-serif; max-width: 34rem; margin: 0 auto; padding: 1rem; overflow-wrap: anywhere; }
header { font-weight: 700; padding: .5rem 0 1rem; }
h1 { font-size: 1.35rem; line-height: 1.3; margin: 0 0 1rem; }
dl { margin: 1rem 0; border-top: 1px solid #8885; }
dl div { padding: .45rem 0; border-bottom: 1px solid #8885; }
dt { font-size: .85rem; opacity: .75; }
dd { margin: 0; font-weight: 600; }
fieldset { border: 1px solid #8888; border-radius: 8px; margin: 1rem 0; padding: .5rem 1rem 1rem; }
legend { font-weight: 600; padding: 0 .3rem; }
label { display: block; padding: .3rem 0; }
label.field { font-weight: 600; }
label small { display: block; font-weight: 400; opacity: .75; }
input:not([type=checkbox], [type=radio]), select { width: 100%; padding: .5rem; margin-top: .2rem; }
input:not([type=checkbox], [type=radio]), select { font: inherit; font-weight: 400; }
button, a.button { font: inherit; font-weight: 600; padding: .6rem 1.2rem; margin: .5rem .5rem .5rem 0; }
button, a.button { border: 1px solid #888; border-radius: 8px; cursor: pointer; }
a.button { display: inline-block; text-decoration: none; }
button.main, a.button { background: #1756b8; border-color: #1756b8; color: #fff; }
p.warning { border-left: 4px solid #c77700; padding: .3rem .8rem; background: #c7770018; }
:focus-visible { outline: 3px solid #1a73e8; outline-offset: 2px; }
`
const styleSource = `'sha256-${createHash('sha256').update(style).digest('base64')}'`

export interface PageOptions {
  readonly title: string
  readonly body: Html
  readonly status?: number
  /** Where forms on the page may be sent besides this server: browsers apply this to redirects too. */
  readonly formTargets?: readonly string[]
  readonly headers?: Readonly<Record<string, string>>
}

export function page({ title, body, status = 200, formTargets = [], headers = {} }: PageOptions): Response {
  const document = html`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} - postern</title><style>${new Html(style)}</style></head><body><header>postern</header><main>
<h1>${title}</h1>
${body}
</main></body></html>
`.text
  return new Response(document, {
    status,
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': `default-src 'none'; style-src ${styleSource}; base-uri 'none'; frame-ancestors 'none'; form-action ${["'self'", ...formTargets].join(' ')}`,
      ...pageHeaders,
      ...headers,
    },
  })
}

/** A line of the facts on a page. `more`: after its value. */
export function row(name: string, value: string, more?: Html): Html {
  return html`<div><dt>${name}</dt><dd>${value}</dd>${more}</div>`
}

/** For sign-ins over plain HTTP: a key that is typed, or a token that comes back, would be shown to the network. */
export function impossiblePage(): Response {
  return page({
    title: 'Nobody can sign in here',
    status: 409,
    body: html`<p>This platform is reached over plain HTTP: the network would see keys and tokens. The operator can set an
https address with <code>--base-url</code>.</p>`,
  })
}

/** Whether a browser shows the answer as a page. Programs, and scripts of pages, get JSON. */
export function isNavigation({ method, headers }: Request): boolean {
  if (method !== 'GET' && method !== 'HEAD') return false
  const mode = headers.get('sec-fetch-mode')
  return mode === null ? /\btext\/html\b/i.test(headers.get('accept') ?? '') : mode === 'navigate'
}

/** For pages and for their redirects. `no-referrer` instead would make browsers send `Origin: null` with forms. */
const pageHeaders = {
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'same-origin',
} as const

/** 303: the browser asks for `location` with GET. */
export function redirect(location: string, headers: Readonly<Record<string, string>> = {}): Response {
  return new Response(null, { status: 303, headers: { location, ...pageHeaders, ...headers } })
}
