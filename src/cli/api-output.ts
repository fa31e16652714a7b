/** How commands show what the platform answered: JSON, a table on a terminal, or columns divided by tabs. */

import { escapeControlCharacters } from '../ops/escape-control.ts'
import type { Answer } from './api-client.ts'
import { table } from './table.ts'
import type { Terminal } from './terminal.ts'

/** `heading`: of the columns. With `json`, the body itself. */
export function show(
  body: Answer,
  { json }: { readonly json?: boolean },
  heading: readonly string[],
  rows: readonly (readonly unknown[])[],
  { stdout }: Terminal,
): void {
  if (json === true) {
    stdout(`${JSON.stringify(body)}\n`)
    return
  }
  const texts = rows.map((row) => row.map((cell) => (cell === null || cell === undefined ? '' : String(cell))))
  if (process.stdout.isTTY) {
    stdout(table([heading, ...texts]))
    return
  }
  for (const row of texts)
    stdout(`${row.map((cell) => escapeControlCharacters(cell.replaceAll('\t', ' '))).join('\t')}\n`)
}

/** The body, or a sentence about it. */
export function tell(
  body: Answer,
  { json }: { readonly json?: boolean },
  sentence: string,
  { stdout }: Terminal,
): void {
  stdout(json === true ? `${JSON.stringify(body)}\n` : `${sentence}\n`)
}

/** The body as JSON that people read. */
export function showWhole(body: Answer, { json }: { readonly json?: boolean }, { stdout }: Terminal): void {
  stdout(`${json === true ? JSON.stringify(body) : JSON.stringify(body, null, 2)}\n`)
}
