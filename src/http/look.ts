/** The look that all pages share, and the mark. Each kind of page adds its own parts. */

import { version } from '../version.ts'
import { Html, html } from './html.ts'
import look from './look.css' with { type: 'text' }

export { look }

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
export const sourceOf = (text: string) => `'sha256-${Bun.SHA256.hash(text, 'base64')}'`
