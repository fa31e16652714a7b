/** Text tables for the output of commands. */

import { escapeControlCharacters, oneLine } from '../ops/escape-control.ts'

/**
 * Aligns rows in columns; the first row is the heading. Control characters in cells are escaped, so every row is one
 * line, and characters that nobody sees, so that no two names look alike for them.
 */
export function table(cells: readonly (readonly string[])[]): string {
  const rows = cells.map((row) => row.map(oneLine))
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? []
  const line = (row: readonly string[]) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd()
  return `${rows.map(line).join('\n')}\n`
}

type Rows = readonly (readonly string[])[]

/**
 * A list as commands print it: a table with its heading on a terminal, elsewhere rows with tabs between the columns.
 * `heading`: undefined for rows that follow others.
 */
export function listing(heading: readonly string[] | undefined, rows: Rows): string {
  if (process.stdout.isTTY) return table(heading === undefined ? rows : [heading, ...rows])
  const line = (row: readonly string[]) =>
    row.map((cell) => escapeControlCharacters(cell.replaceAll('\t', ' '))).join('\t')
  return rows.map((row) => `${line(row)}\n`).join('')
}
