/**
 * The look that all pages share: colours, type, space and the mark. Each kind of page adds its own parts. Sizes are
 * multiples of 4 px; every pair of colours has a contrast of 4.5 to 1 in both schemes.
 */

import { createHash } from 'node:crypto'
import { version } from '../version.ts'
import { Html, html } from './html.ts'

export const look = `
:root { color-scheme: light dark; --ground: #ffffff; --surface: #f5f6f8; --line: #d9dee5; --control-line: #7b8694;
  --text: #1a222c; --muted: #55606e; --accent: #1756b8; --on-accent: #ffffff; --attention: #8a5200; }
@media (prefers-color-scheme: dark) {
  :root { --ground: #12161c; --surface: #1a2029; --line: #2c3541; --control-line: #738091;
    --text: #e6eaf0; --muted: #a5afbc; --accent: #7fb0ff; --on-accent: #0b1a33; --attention: #e6ad52; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--text); overflow-wrap: anywhere; }
body { font: 16px/24px system-ui, sans-serif; font-variant-numeric: tabular-nums; }
h1 { font-size: 20px; line-height: 28px; font-weight: 600; margin: 0 0 16px; }
a { color: var(--accent); }
code, pre, kbd { font: 13px/20px ui-monospace, monospace; }
.brand { display: inline-flex; align-items: center; gap: 8px; font-weight: 600; color: var(--text); }
.brand { text-decoration: none; white-space: nowrap; }
.brand small { font-size: 12px; font-weight: 400; color: var(--muted); }
button, a.button { font: inherit; font-size: 14px; font-weight: 600; line-height: 20px; }
button, a.button { padding: 6px 16px; cursor: pointer; }
button, a.button { border: 1px solid var(--control-line); border-radius: 6px; background: none; color: var(--text); }
button.main, a.button { background: var(--accent); border-color: var(--accent); color: var(--on-accent); }
a.button { display: inline-block; text-decoration: none; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
@media (pointer: coarse) { button, a.button { padding: 12px 16px; } }
`

/** A small door in a wall. */
const mark = new Html(
  '<svg width="20" height="20" viewBox="0 0 20 20" aria-hidden="true"><path fill="none" stroke="currentColor" stroke-width="2" d="M2 19V4h16v15M7 19v-6a3 3 0 0 1 6 0v6M2 9h5M13 9h5"/></svg>',
)

/** The mark with the name and the version; a link if there is where to go. */
export function brand(home?: string): Html {
  const inside = html`${mark}postern <small>${version}</small>`
  return home === undefined
    ? html`<span class="brand">${inside}</span>`
    : html`<a class="brand" href="${home}">${inside}</a>`
}

/** The source of an inline style or script, for a `Content-Security-Policy`. */
export const sourceOf = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`
