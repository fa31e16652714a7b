/** Tables of commands. */

import { escapeControlCharacters } from '../ops/escape-control.ts'

/**
 * Rows in columns, as wide as their widest cell; the first row is the heading. A cell is one line, whatever is in it.
 */
export function table(cells: readonly (readonly string[])[]): string {
  const rows = cells.map((row) => row.map(escapeControlCharacters))
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? []
  const line = (row: readonly string[]) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd()
  return `${rows.map(line).join('\n')}\n`
}
