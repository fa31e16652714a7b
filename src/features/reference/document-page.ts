/** Renders a document of `docs/` from Markdown to an HTML page. */

import { Marked, Renderer, type Tokens } from 'marked'
import { escapeHtml } from '../../http/html.ts'
import { contentsList, framed, type Heading, type PageList } from './frame.ts'

/** A page with at least this many sections has a table of contents. */
const partsListedFrom = 3

/** The site that a page belongs to. */
export interface Site {
  /** Names of the documents that have pages; links to other files are rendered as plain text. */
  readonly names: ReadonlySet<string>
  /** Names of files that are beside the pages. Of other pictures the words that describe them are shown. */
  readonly files: ReadonlySet<string>
  readonly pages: PageList
  /** Of the base URL, without a trailing slash; escaped for HTML. */
  readonly basePath: string
}

/** The document's first line must be its title, `# …`. `href`: of the page, below the base path. */
export function documentPage(markdown: string, href: string, { names, files, pages, basePath }: Site): string {
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
        const target = targetOf(href, { names, files, basePath })
        return target === undefined ? text : `<a href="${target}">${text}</a>`
      },
      table(this: Renderer, token: Tokens.Table) {
        return `<div class="wide">${Renderer.prototype.table.call(this, token)}</div>\n`
      },
      // Other HTML in the documents is comments for readers and generators of the Markdown.
      html: ({ text }) => picturesIn(text, files, basePath),
      image({ href: file, text }) {
        const name = file.replace(/^images\//, '')
        const words = escapeHtml(text)
        return files.has(name)
          ? `<span class="picture"><img src="${basePath}/docs/${name}" alt="${words}"></span>`
          : `<i>${words}</i>`
      },
      // Readers see which block they type, and which one the command prints.
      code({ text, lang }) {
        const kind = lang === 'sh' ? 'command' : lang === 'text' ? 'output' : 'data'
        return `<pre class="${kind}"><code>${escapeHtml(text)}\n</code></pre>\n`
      },
    },
  })
  const [, title = 'Documentation', rest = ''] = /^# (.*)\n([^]*)$/.exec(markdown) ?? []
  const html = marked.parse(rest, { async: false })
  const contents = parts.length < partsListedFrom ? '' : `${contentsList({ headings: parts })}\n`
  return framed({
    title: `${title} - postern`,
    body: `<h1>${title}</h1>\n${contents}${html}`,
    ...{ basePath, pages, href },
  })
}

/** A picture for each colour scheme, in the only form that the documents have. */
const picturePair =
  /<picture>\s*<source media="\(prefers-color-scheme: dark\)" srcset="images\/([\w.-]+)">\s*<img src="images\/([\w.-]+)" alt="([^"&<>]*)">\s*<\/picture>/g

/** The pictures of a block of HTML beside one another; nothing of any other HTML. */
function picturesIn(block: string, files: Site['files'], basePath: string): string {
  const shown = [...block.matchAll(picturePair)].map(([, darkFile = '', lightFile = '', words = '']) => {
    if (!files.has(darkFile) || !files.has(lightFile)) return `<i>${words}</i>`
    const below = `${basePath}/docs/`
    const source = `<source media="(prefers-color-scheme: dark)" srcset="${below}${darkFile}">`
    return `<picture>${source}<img src="${below}${lightFile}" alt="${words}"></picture>`
  })
  return shown.length === 0 ? '' : `<div class="pictures">${shown.join('\n')}</div>\n`
}

/** The link target on the site; undefined for files that exist only in the repository. */
function targetOf(href: string, { names, files, basePath }: Omit<Site, 'pages'>): string | undefined {
  if (/^(?:#|https?:)/.test(href)) return href
  const [, file = ''] = /^(?:\.\.\/)?(?:deploy\/)?([\w.-]+)$/.exec(href) ?? []
  if (files.has(file)) return `${basePath}/docs/${file}`
  if (href === 'openapi.json') return `${basePath}/openapi.json`
  const start = '../README.md'
  if (href.startsWith(start)) return `${basePath}/docs/start${href.slice(start.length)}`
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
