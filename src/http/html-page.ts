/** Pages on which people sign in and consent. No script, nothing loaded, never framed or cached (contract, 12.3). */

import { Html, html } from './html.ts'
import { brand, look, sourceOf } from './look.ts'
import { wholeResponse } from './respond.ts'

const style = `${look}
body > header { padding: 16px 16px 8px; max-width: 36rem; margin: 0 auto; }
main { max-width: 36rem; margin: 0 auto; padding: 8px 16px 32px; }
dl { margin: 16px 0; border-top: 1px solid var(--line); }
dl div { padding: 8px 0; border-bottom: 1px solid var(--line); }
dt { font-size: 14px; line-height: 20px; color: var(--muted); }
dd { margin: 0; font-weight: 600; }
fieldset { border: 1px solid var(--line); border-radius: 6px; margin: 16px 0; padding: 8px 16px 16px; }
legend { font-weight: 600; padding: 0 4px; }
label { display: block; padding: 4px 0; }
label.field { font-weight: 600; }
label small { display: block; font-weight: 400; color: var(--muted); }
label:has(input[name=tool]) { padding-left: 24px; }
input:not([type=checkbox], [type=radio]), select { padding: 8px; margin-top: 4px; font-weight: 400; }
form button { margin: 8px 8px 8px 0; }
p.warning { border-left: 4px solid var(--attention); padding: 4px 12px; background: var(--surface); }
`
const styleSource = sourceOf(style)

export interface PageOptions {
  readonly title: string
  readonly body: Html
  readonly status?: number
  /** Given for a page that may be large: its owner has it in memory until the browser has read it. */
  readonly request?: Request
  /** Where forms on the page may be sent besides this server: browsers apply this to redirects too. */
  readonly formTargets?: readonly string[]
  readonly headers?: Readonly<Record<string, string>>
}

/** Throws `rate_limited` for a large page if its owner's share of memory is used up. */
export function page({ title, body, status = 200, request, formTargets = [], headers = {} }: PageOptions): Response {
  const document = html`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} - postern</title><style>${new Html(style)}</style></head><body><header>${brand()}</header><main>
<h1>${title}</h1>
${body}
</main></body></html>
`.text
  const parts = {
    status,
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': `default-src 'none'; style-src ${styleSource}; base-uri 'none'; frame-ancestors 'none'; form-action ${["'self'", ...formTargets].join(' ')}`,
      ...pageHeaders,
      ...headers,
    },
  }
  return request === undefined ? new Response(document, parts) : wholeResponse(request, document, parts)
}

/** A line of the facts on a page. `more`: after its value. */
export function row(name: string, value: string, more?: Html): Html {
  return html`<div><dt>${name}</dt><dd>${value}</dd>${more}</div>`
}

/** For sign-ins over plain HTTP: a key that is typed, or a token that comes back, would be shown to the network. */
export function impossiblePage(base: string): Response {
  return page({
    title: 'Nobody can sign in here',
    status: 409,
    body: html`<p>postern is reached over plain HTTP, so the network would see keys and tokens. The operator can set an
https address with <code>--base-url</code>. <a href="${base}/docs/deployment">How to put TLS in front of postern</a></p>
<p>Until then, use an API key in your client: <a href="${base}/docs/connect-a-client">Connect a client</a></p>`,
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
