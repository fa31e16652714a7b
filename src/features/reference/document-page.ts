/** Renders a document of `docs/` from Markdown to an HTML page. */

import { Marked, Renderer, type Tokens } from 'marked'
import { contentsList, framed, type Heading } from './frame.ts'

/** A page with at least this many sections has a table of contents. */
const partsListedFrom = 3

/**
 * The document's first line must be its title, `# …`. `names`: of the documents that have pages; links to other files
 * are rendered as plain text. `basePath`: of the base URL, without a trailing slash; escaped for HTML.
 */
export function documentPage(markdown: string, names: ReadonlySet<string>, basePath: string): string {
  const parts: Heading[] = []
  const idOf = createHeadingIds()
  const marked = new Marked({
    renderer: {
      heading({ tokens, depth, text }) {
        const id = idOf(text)
        const title = this.parser.parseInline(tokens)
        if (depth === 2) parts.push({ id, title: title.replaceAll(/<\/?a\b[^>]*>/g, '') })
        return `<h${depth} id="${id}">${title}</h${depth}>\n`
      },
      link({ href, tokens }) {
        const text = this.parser.parseInline(tokens)
        const target = targetOf(href, names, basePath)
        return target === undefined ? text : `<a href="${target}">${text}</a>`
      },
      table(this: Renderer, token: Tokens.Table) {
        return `<div class="wide">${Renderer.prototype.table.call(this, token)}</div>\n`
      },
      // The only HTML in the documents is comments for readers and generators of the Markdown.
      html: () => '',
      image: () => '',
    },
  })
  const [, title = 'Documentation', rest = ''] = /^# (.*)\n([^]*)$/.exec(markdown) ?? []
  const html = marked.parse(rest, { async: false })
  const contents = parts.length < partsListedFrom ? '' : `${contentsList(parts)}\n`
  return framed({ title: `${title} - postern`, basePath, body: `<h1>${title}</h1>\n${contents}${html}` })
}

/** The link target on the site; undefined for files that exist only in the repository. */
function targetOf(href: string, names: ReadonlySet<string>, basePath: string): string | undefined {
  if (/^(?:#|https?:)/.test(href)) return href
  const [, name = '', part = ''] = /^([\w-]+)\.md(#.*)?$/.exec(href) ?? []
  if (name === 'README') return `${basePath}/docs${part}`
  return names.has(name) ? `${basePath}/docs/${name}${part}` : undefined
}

/** Heading ids as GitHub generates them, so that links to sections work there and here. One generator per page. */
export function createHeadingIds(): (text: string) => string {
  const counts = new Map<string, number>()
  return (text) => {
    const id = text
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(/\s/g, '-')
    const count = counts.get(id) ?? 0
    counts.set(id, count + 1)
    return count === 0 ? id : `${id}-${count}`
  }
}
