/** The common frame of all pages under `/docs`: HTML and one style sheet, without scripts, fonts or other resources. */

import { createHash } from 'node:crypto'
import { escapeHtml } from '../../http/html.ts'

const style = `
:root { color-scheme: light dark; }
body { font: 16px/1.55 system-ui, sans-serif; max-width: 50rem; margin: 0 auto 3rem; padding: 0 1rem; }
body { overflow-wrap: anywhere; }
header { padding: 1rem 0; border-bottom: 1px solid #8883; margin-bottom: 2rem; }
header a { margin-right: 1.2rem; }
h2 { margin-top: 3rem; font-size: 1.2rem; }
h3 { margin-top: 2rem; font-size: 1rem; }
code, pre { font: 13px/1.5 ui-monospace, monospace; }
pre { overflow: auto; padding: .8rem; border: 1px solid #8885; border-radius: 6px; overflow-wrap: normal; }
table { border-collapse: collapse; width: 100%; }
td, th { text-align: left; vertical-align: top; padding: .35rem .8rem .35rem 0; border-bottom: 1px solid #8883; }
.wide { overflow-x: auto; }
.wide td, .wide th { min-width: 4.5rem; overflow-wrap: normal; }
nav ul { columns: 18rem; padding-left: 1.2rem; }
.method { font-weight: 700; text-transform: uppercase; }
summary { cursor: pointer; }
`
/** The `Content-Security-Policy`: only this style sheet. No scripts, no resources, no framing by other pages. */
export const docsPolicy =
  `default-src 'none'; style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'; ` +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/** A complete HTML document. `basePath`: of the base URL, without a trailing slash. All but `title` is escaped HTML. */
export function framed({ title, basePath, body }: Record<'title' | 'basePath' | 'body', string>): string {
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)}</title><style>${style}</style></head><body>
<header><a href="${basePath}/docs">Documentation</a><a href="${basePath}/docs/api">API reference</a></header><main>
${body}
</main></body></html>
`
}

/** `title`: HTML. */
export type Heading = Readonly<Record<'id' | 'title', string>>

/** A table of contents. */
export function contentsList(headings: readonly Heading[]): string {
  const items = headings.map(({ id, title }) => `<li><a href="#${escapeHtml(id)}">${title}</a></li>`)
  return `<nav aria-label="Contents"><ul>\n${items.join('\n')}\n</ul></nav>`
}
