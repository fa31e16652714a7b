/** `postern docs`: prints the documentation that is inside the executable, for machines without a browser. */

import { CommandError } from '../errors.ts'
import { documents, pageList } from '../features/reference/documents.ts'
import { didYouMean } from '../schema/near-name.ts'
import type { Terminal } from './terminal.ts'

/** A page as it is written, in Markdown; without a name, the list of pages. Throws CommandError for no such page. */
export function printDocs(page: string | undefined, { stdout }: Terminal): void {
  const names = pageList.flatMap(({ pages }) => pages.map(({ href }) => href.slice('/docs/'.length)))
  const list = names.filter((name) => documents.has(name)).map((name) => `${name}\n`)
  const markdown = page === undefined ? list.join('') : documents.get(page)
  if (markdown === undefined)
    throw new CommandError(`there is no page ${page}${didYouMean(page ?? '', names) || '; `postern docs` lists all'}`)
  stdout(markdown)
}
