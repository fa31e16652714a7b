/** `postern docs`: prints the documentation that is inside the executable, for machines without a browser. */

import { CommandError } from '../errors.ts'
import { documents, pageList } from '../features/reference/documents.ts'
import { didYouMean } from '../schema/near-name.ts'
import { table } from './table.ts'
import type { Terminal } from './terminal.ts'

/** A page as it is written, in Markdown; without a name, the list of pages. Throws CommandError for no such page. */
export function printDocs(page: string | undefined, { stdout }: Terminal): void {
  const pages = pageList.flatMap((part) => part.pages.map(({ href, title }) => [href.slice('/docs/'.length), title]))
  const names = pages.map(([name = '']) => name)
  const list = () => table(pages.filter(([name = '']) => documents.has(name)) as string[][])
  // Links of the pages have the ending of their files.
  const markdown = page === undefined ? list() : documents.get(page.replace(/\.md$/, ''))
  if (markdown === undefined) {
    const [longer] = names.filter((name) => name.startsWith(page ?? ''))
    const near = longer === undefined ? didYouMean(page ?? '', names) : ` (Did you mean ${longer}?)`
    throw new CommandError(`there is no page ${page}${near || '; `postern docs` lists all'}`)
  }
  stdout(markdown)
}
