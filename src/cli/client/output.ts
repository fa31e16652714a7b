/** Prints what the platform answered: as JSON, as a table on a terminal, or in columns divided by tabs. */

import { escapeControlCharacters } from '../../ops/escape-control.ts'
import { table } from '../table.ts'
import type { Terminal } from '../terminal.ts'

export interface Table {
  /** Of the columns; for people only. */
  readonly heading: readonly string[]
  readonly rows: readonly (readonly unknown[])[]
}

/** With `json`, the body itself. */
export function printTable(
  body: unknown,
  { json }: { readonly json?: boolean },
  { heading, rows }: Table,
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
export function printSentence(
  body: unknown,
  { json }: { readonly json?: boolean },
  sentence: string,
  { stdout }: Terminal,
): void {
  stdout(json === true ? `${JSON.stringify(body)}\n` : `${sentence}\n`)
}

/** The body as JSON that people read. */
export function printJson(body: unknown, { json }: { readonly json?: boolean }, { stdout }: Terminal): void {
  stdout(`${json === true ? JSON.stringify(body) : JSON.stringify(body, null, 2)}\n`)
}
