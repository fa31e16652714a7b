/** Reads the documents of `docs/` where the source is: macros, which run when the program is compiled. */

import { readdirSync, readFileSync } from 'node:fs'
import { extname, resolve } from 'node:path'

/** Markdown by the name of the file without `.md`, in the order of the names. */
export function readDocuments(): Record<string, string> {
  const folder = resolve(import.meta.dir, '../../../docs')
  const names = readdirSync(folder).filter((name) => name.endsWith('.md'))
  return Object.fromEntries(names.sort().map((name) => [name.slice(0, -3), readFileSync(`${folder}/${name}`, 'utf8')]))
}

export interface PictureFile {
  readonly type: string
  /** In base64. */
  readonly content: string
}

/** The pictures of the documents, by the name of the file. */
export function readPictures(): Record<string, PictureFile> {
  const folder = resolve(import.meta.dir, '../../../docs/images')
  const types: Record<string, string> = { '.svg': 'image/svg+xml', '.png': 'image/png', '.webp': 'image/webp' }
  const pictures = readdirSync(folder).flatMap((name) => {
    const type = types[extname(name)]
    const content = readFileSync(`${folder}/${name}`).toString('base64')
    return type === undefined ? [] : [[name, { type, content }] as const]
  })
  return Object.fromEntries(pictures)
}
