/** Reads the documents of `docs/` where the source is: a macro, which runs when the program is compiled. */

import { readdirSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'

/** Markdown by the name of the file without `.md`, in the order of the names. */
export function readDocuments(): Record<string, string> {
  const folder = resolve(import.meta.dir, '../../../docs')
  const names = readdirSync(folder).filter((name) => name.endsWith('.md'))
  return Object.fromEntries(names.sort().map((name) => [name.slice(0, -3), readFileSync(`${folder}/${name}`, 'utf8')]))
}
