/** Reads the documentation where the source is: macros, which run when the program is compiled. */

import { readdirSync, readFileSync } from 'node:fs'
import { basename, extname, resolve } from 'node:path'

const root = resolve(import.meta.dir, '../../..')

/** Markdown by the name of its file in `docs/`, sorted; and the README as `start`, with links as those of `docs/`. */
export function readDocuments(): Record<string, string> {
  const folder = `${root}/docs`
  const names = readdirSync(folder).filter((name) => name.endsWith('.md'))
  const documents = names.map((name) => [name.slice(0, -3), readFileSync(`${folder}/${name}`, 'utf8')] as const)
  const start = readFileSync(`${root}/README.md`, 'utf8').replaceAll(/(\(|")docs\//g, '$1')
  return Object.fromEntries([...documents, ['start', start] as const].sort(([a], [b]) => (a < b ? -1 : 1)))
}

/** A file that documents show, or lead to. */
export interface EmbeddedFile {
  readonly type: string
  /** In base64. */
  readonly content: string
}

/** The pictures of the documents, the files of `deploy/`, and those about the project, by their names. */
export function readFiles(): Record<string, EmbeddedFile> {
  const types: Record<string, string> = { '.svg': 'image/svg+xml', '.png': 'image/png', '.webp': 'image/webp' }
  const typeOf = (name: string) => types[extname(name)]
  const files = [
    ...readdirSync(`${root}/docs/images`).flatMap((name) => (typeOf(name) ? [`docs/images/${name}`] : [])),
    ...readdirSync(`${root}/deploy`).map((name) => `deploy/${name}`),
    ...['CHANGELOG.md', 'CONTRIBUTING.md', 'LICENSE', 'SECURITY.md', 'THIRD-PARTY-LICENCES.md'],
  ]
  return Object.fromEntries(
    files.map((file) => {
      const type = typeOf(file) ?? 'text/plain; charset=utf-8'
      return [basename(file), { type, content: readFileSync(`${root}/${file}`).toString('base64') }]
    }),
  )
}
