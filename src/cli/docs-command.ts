/** `postern docs`: prints the documentation that is inside the executable, for machines without a browser. */

import { CommandError } from '../errors.ts'
import { documents, files, pageList } from '../features/reference/documents.ts'
import { didYouMean } from '../schema/near-name.ts'
import { table } from './table.ts'
import type { Terminal } from './terminal.ts'

/** A page as it is written, in Markdown, or a file of `deploy/`; without a name, the list of pages. Throws CommandError. */
export function printDocs(page: string | undefined, { stdout }: Terminal): void {
  const pages = pageList.flatMap((part) => part.pages.map(({ href, title }) => [href.slice('/docs/'.length), title]))
  const names = pages.map(([name = '']) => name)
  const list = () => table(pages.filter(([name = '']) => documents.has(name)) as string[][])
  // Links of the pages have the ending of their files.
  const file = files.get(page ?? '')
  const text = file?.type.startsWith('text/') ? Buffer.from(file.content, 'base64').toString() : undefined
  const markdown = page === undefined ? list() : (documents.get(page.replace(/\.md$/, '')) ?? text)
  if (markdown === undefined) {
    const [longer] = names.filter((name) => name.startsWith(page ?? ''))
    const near = longer === undefined ? didYouMean(page ?? '', names) : ` (Did you mean ${longer}?)`
    throw new CommandError(`there is no page ${page}${near || '; `postern docs` lists all'}`)
  }
  stdout(markdown)
}
