/** The documents of `docs/` and the README, embedded in the executable. Imported at the first request for one. */

import { createHeadingIds } from './document-page.ts'
import type { PageList } from './frame.ts'
import { readDocuments, readFiles } from './read-documents.ts' with { type: 'macro' }
import type { EmbeddedFile } from './read-documents.ts'

/** Markdown by page name; `README` lists the others. */
export const documents: ReadonlyMap<string, string> = new Map(Object.entries(readDocuments()))

/** By the name of the file in `docs/images`, `deploy` or the repository itself. */
export const files: ReadonlyMap<string, EmbeddedFile> = new Map(Object.entries(readFiles()))

/** The pages in the order and the sections of `docs/README.md`, which comes first; the API reference comes last. */
export const pageList: PageList = [
  {
    section: '',
    pages: [
      { title: 'Documentation', href: '/docs' },
      { title: 'Install and first minute', href: '/docs/start' },
    ],
  },
  ...(documents.get('README') ?? '')
    .split('\n## ')
    .slice(1)
    .map((part) => ({
      section: part.split('\n', 1)[0] ?? '',
      pages: [...part.matchAll(/^- \[([^\]]+)\]\(([\w-]+)\.md\)/gm)].map(([, title = '', name = '']) => ({
        title,
        href: `/docs/${name}`,
      })),
    })),
  { section: 'Interface', pages: [{ title: 'API reference', href: '/docs/api' }] },
]

/** Each section of each page, as plain text, for the search. */
export function searchIndex(): { title: string; part: string; href: string; text: string }[] {
  return [...documents].flatMap(([name, markdown]) => {
    const [, title = '', rest = ''] = /^# (.*)\n([^]*)$/.exec(markdown) ?? []
    const href = name === 'README' ? '/docs' : `/docs/${name}`
    const idOf = createHeadingIds()
    return rest.split(/^(?=##+ )/m).map((section) => {
      const [, part = '', text = section] = /^##+ (.*)\n([^]*)$/.exec(section) ?? []
      return {
        title,
        part,
        href: part === '' ? href : `${href}#${idOf(part)}`,
        text: text.replaceAll(/[`*|#\n]+/g, ' '),
      }
    })
  })
}
