/** The common frame of all pages under `/docs`: the list of pages beside the page, one style sheet and one script. */

import { escapeHtml } from '../../http/html.ts'
import { brand, look, sourceOf } from '../../http/look.ts'
import { script } from './page-script.ts'

const style = `${look}
.top { display: flex; align-items: center; gap: 16px; padding: 12px 16px; border-bottom: 1px solid var(--line); }
.top search { margin-left: auto; position: relative; }
.top input { font-size: 14px; padding: 4px 8px; width: 14rem; max-width: 32vw; }
.found { position: absolute; right: 0; top: 40px; width: 24rem; max-width: 90vw; max-height: 70vh; overflow: auto; }
.found { margin: 0; padding: 8px; list-style: none; z-index: 1; }
.found { background: var(--ground); border: 1px solid var(--line); border-radius: 6px; }
.found a { display: block; padding: 4px 8px; text-decoration: none; }
.found small { display: block; color: var(--muted); font-size: 12px; line-height: 16px; }
.to-pages { font-size: 14px; white-space: nowrap; }
.room { display: flex; flex-direction: column; }
.pages { order: 1; padding: 16px; font-size: 14px; line-height: 20px; border-top: 1px solid var(--line); }
.pages b { display: block; margin: 12px 0 4px; color: var(--muted); font-weight: 600; }
.pages ul { list-style: none; margin: 0; padding: 0; }
.pages a { display: block; padding: 4px 8px; border-radius: 6px; color: var(--text); text-decoration: none; }
.pages a[aria-current] { background: var(--surface); font-weight: 600; }
main { padding: 24px 16px 48px; max-width: 60rem; min-width: 0; }
main p, main li, main > nav { max-width: 72ch; }
h1 { font-size: 28px; line-height: 36px; }
h2 { margin: 48px 0 12px; font-size: 20px; line-height: 28px; }
h3 { margin: 32px 0 8px; font-size: 16px; }
pre { overflow: auto; padding: 12px; border: 1px solid var(--line); border-radius: 6px; overflow-wrap: normal; }
pre.command { background: var(--surface); border-color: var(--control-line); margin-bottom: 0; }
pre.output { border-style: dashed; margin-top: 8px; color: var(--muted); }
.copied { position: relative; }
.copied button { position: absolute; right: 8px; top: 8px; padding: 0 8px; background: var(--ground); font-size: 12px; }
table { border-collapse: collapse; width: 100%; font-size: 14px; line-height: 20px; }
td, th { text-align: left; vertical-align: top; padding: 8px 12px 8px 0; border-bottom: 1px solid var(--line); }
.wide { overflow-x: auto; }
/* A shadow at an edge behind which there is more: the first two cover the others where there is none. */
.wide { background: linear-gradient(to right, var(--ground) 50%, transparent) left / 40px 100% no-repeat local,
  linear-gradient(to left, var(--ground) 50%, transparent) right / 40px 100% no-repeat local,
  linear-gradient(to right, var(--line), transparent) left / 12px 100% no-repeat scroll,
  linear-gradient(to left, var(--line), transparent) right / 12px 100% no-repeat scroll; }
.wide td, .wide th { min-width: 6rem; overflow-wrap: normal; }
img { max-width: 100%; height: auto; border-radius: 6px; }
.picture { display: block; overflow-x: auto; }
.picture img[src^='data:image/svg'] { min-width: 560px; }
.pictures { display: flex; flex-wrap: wrap; gap: 16px; margin: 16px 0; }
.pictures img { display: block; border: 1px solid var(--line); }
.contents ul { columns: 18rem; padding-left: 20px; }
.turn { display: flex; justify-content: space-between; gap: 16px; margin-top: 48px; }
.turn { padding-top: 16px; border-top: 1px solid var(--line); }
.method { font-weight: 700; text-transform: uppercase; }
summary { cursor: pointer; }
@media (min-width: 960px) {
  .room { display: grid; grid-template-columns: 240px minmax(0, 1fr); }
  .to-pages { display: none; }
  .pages { order: 0; border: 0; border-right: 1px solid var(--line); min-height: 100vh; }
  main { padding: 32px 48px 64px; }
}
@media (max-width: 599px) { .copied button { position: static; display: block; margin: 4px 0 0 auto; } }
@media (pointer: coarse) { .pages a { padding: 12px 8px; } }
`
/** The `Content-Security-Policy`: this style sheet, this script, our pictures, the index. No framing. */
export const docsPolicy =
  `default-src 'none'; style-src ${sourceOf(style)}; script-src ${sourceOf(script)}; img-src 'self'; ` +
  "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/** A page in the list of pages. `href`: below the base path. */
export interface Listed {
  readonly title: string
  readonly href: string
}
/** The list of pages by section, in the order in which they are read. */
export type PageList = readonly { readonly section: string; readonly pages: readonly Listed[] }[]

interface Framed {
  readonly title: string
  /** Of the base URL, without a trailing slash. */
  readonly basePath: string
  /** HTML. */
  readonly body: string
  readonly pages: PageList
  /** The page's own place in the list. */
  readonly href: string
}

/** A complete HTML document. All but `title` is escaped HTML. */
export function framed({ title, basePath, body, pages, href }: Framed): string {
  const flat = pages.flatMap((section) => section.pages)
  const at = flat.findIndex((one) => one.href === href)
  const link = (one: Listed | undefined, before: string, after: string) =>
    one === undefined ? '<span></span>' : `<a href="${basePath}${one.href}">${before}${one.title}${after}</a>`
  const item = (one: Listed) =>
    `<li><a href="${basePath}${one.href}"${one.href === href ? ' aria-current="page"' : ''}>${one.title}</a></li>`
  const list = listsOf(pages.map(({ section, pages: some }) => [section, some.map(item)]))
  const turn = at < 0 ? '' : `<div class="turn">${link(flat[at - 1], '← ', '')}${link(flat[at + 1], '', ' →')}</div>`
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)}</title><style>${style}</style></head><body>
<header class="top">${brand(`${basePath}/docs`).text}<a class="to-pages" href="#pages">Pages</a><search data-base="${basePath}"></search></header><div class="room">
<nav class="pages" id="pages" aria-label="Pages">${list}</nav><main>
${body}
${turn}
</main></div><script>${script}</script></body></html>
`
}

/** `title`: HTML. */
export type Heading = Readonly<Record<'id' | 'title', string>>

/** A table of contents, in groups if it is long. */
export function contentsList(
  ...groups: readonly { readonly name?: string; readonly headings: readonly Heading[] }[]
): string {
  const item = ({ id, title }: Heading) => `<li><a href="#${escapeHtml(id)}">${title}</a></li>`
  const lists = listsOf(groups.map(({ name = '', headings }) => [name, headings.map(item)]))
  return `<nav class="contents" aria-label="Contents">${lists}</nav>`
}

/** Lists, each below its name if it has one. */
function listsOf(groups: readonly (readonly [name: string, items: readonly string[]])[]): string {
  const lists = groups.map(([name, items]) => `${name && `<b>${name}</b>`}<ul>\n${items.join('\n')}\n</ul>`)
  return lists.join('\n')
}
