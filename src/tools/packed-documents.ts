/** The documents in an archive, which has a part of the repository's files. */

import { cpSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'

/** A link that leads neither to another site nor within its page. */
const relativeLink = /\[((?:[^\][]|\[[^\]]*\])*)\]\((?!https?:|#)([^)#]+)[^)]*\)/g
const codeBlock = /(^```[^]*?^```$)/m

/** Copies all documents but those on how to change postern. A link to a file that is not there becomes its text. */
export function packDocuments(root: string, folder: string, documents: readonly string[]): void {
  for (const one of documents) cpSync(join(root, one), join(folder, basename(one)), { recursive: true })
  rmSync(join(folder, 'docs/internals'), { recursive: true })
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    if (!name.endsWith('.md')) continue
    const file = join(folder, name)
    const isThere = (path: string) => existsSync(join(dirname(file), path))
    const parts = readFileSync(file, 'utf8').split(codeBlock)
    writeFileSync(file, parts.map((part, index) => (index % 2 === 1 ? part : unlinked(part, isThere))).join(''))
  }
}

function unlinked(text: string, isThere: (path: string) => boolean): string {
  return text.replace(relativeLink, (link, words: string, path: string) => (isThere(path) ? link : words))
}
