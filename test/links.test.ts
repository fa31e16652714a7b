/** The documents of the repository: each is linked from another, and each link, with its anchor, leads somewhere. */

import { describe, expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { createHeadingIds } from '../src/features/reference/document-page.ts'

const root = resolve(import.meta.dir, '..')
const textOf = (file: string) => readFileSync(join(root, file), 'utf8')
const isOurs = (file: string) => !file.includes('node_modules')
const below = (folder: string) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter(isOurs)
    .map((name) => join(folder, name))
const folders = ['deploy', 'docs', 'fixtures', 'src', 'test'] as const
const documents = [
  ...[...new Bun.Glob('*.md').scanSync(root)],
  ...folders.flatMap((folder) => below(folder).filter((file) => file.endsWith('.md'))),
].sort()

/** The text without code, which has brackets of another meaning. */
function proseOf(file: string): string {
  return textOf(file)
    .replaceAll(/^```[^]*?^```$/gm, '')
    .replaceAll(/`[^`\n]*`/g, (code) => 'x'.repeat(code.length))
}

interface Link {
  readonly href: string
  /** Below the repository. */
  readonly target: string
  readonly part: string | undefined
}

/** The links and pictures of a document, but for those to other sites. */
function linksOf(file: string): Link[] {
  const prose = proseOf(file)
  const links = [...prose.matchAll(/\]\(([^)\s]+)\)/g)]
  // Pictures for each colour scheme are HTML.
  const hrefs = [...links, ...prose.matchAll(/<(?:source|img) [^>]*?(?:srcset|src)="([^"]+)"/g)].map(
    ([, href = '']) => href,
  )
  return hrefs
    .filter((href) => !/^https?:/.test(href))
    .map((href) => {
      const [path = '', part] = href.split('#')
      return { href, target: path === '' ? file : join(dirname(file), path), part }
    })
}

function anchorsOf(file: string): string[] {
  const idOf = createHeadingIds()
  const headings = textOf(file)
    .replaceAll(/^```[^]*?^```$/gm, '')
    .matchAll(/^#+ (.*)$/gm)
  return [...headings].map(([, heading = '']) => idOf(heading))
}

describe('each link leads somewhere', () => {
  test('there are many documents', () => expect(documents.length).toBeGreaterThan(60))
  for (const file of documents) {
    test(file, () => {
      for (const { href, target, part } of linksOf(file)) {
        expect({ href, isThere: existsSync(join(root, target)), isInside: !target.startsWith('..') }).toEqual({
          href,
          isThere: true,
          isInside: true,
        })
        if (part === undefined) continue
        expect({ href, anchors: target.endsWith('.md') ? anchorsOf(target) : [] }).toEqual({
          href,
          anchors: expect.arrayContaining([part]),
        })
      }
      // A link in brackets of its own kind would be looked at by nobody.
      expect(proseOf(file).match(/^\[[^\]]+\]:|\]\[[^\]]*\]|<https?:/gm) ?? []).toEqual([])
    })
  }
})

describe('each document is linked', () => {
  test('all but those of the rooms of the source can be reached from the README', () => {
    const reached = new Set(['README.md'])
    for (const file of reached)
      for (const { target } of linksOf(file)) {
        const isFolder = existsSync(join(root, target)) && statSync(join(root, target)).isDirectory()
        const document = isFolder ? join(target, 'README.md') : target
        if (documents.includes(document)) reached.add(document)
      }
    expect(documents.filter((file) => !file.startsWith('src/') && !reached.has(file))).toEqual([])
  })

  test('docs/README.md links every page beside it, and docs/internals/README.md too', () => {
    for (const folder of ['docs', 'docs/internals']) {
      const linked = linksOf(join(folder, 'README.md')).map(({ target }) => target)
      const pages = documents.filter((file) => dirname(file) === folder && file !== join(folder, 'README.md'))
      expect(pages.filter((file) => !linked.includes(file))).toEqual([])
    }
  })

  test('every picture of the documents is shown by one', () => {
    const shown = documents.flatMap((file) => linksOf(file).map(({ target }) => target))
    const pictures = below('docs/images').filter((file) => /\.(?:svg|png|webp)$/.test(file))
    expect(pictures.filter((file) => !shown.includes(file))).toEqual([])
  })
})

test('a document that a comment, a message or a file of deploy/ names is there', () => {
  const files = [...folders.flatMap(below), 'Makefile', ...documents].filter((file) =>
    /\.(?:ts|md|conf|service|yaml|yml|sh)$|file$/.test(file),
  )
  const self = relative(root, import.meta.path)
  for (const file of files.filter((one) => one !== self)) {
    for (const [, name = ''] of textOf(file).matchAll(/(?<![\w./-])((?:docs|deploy|fixtures)\/[\w/-]+\.md)\b/g))
      expect({ file, name, isThere: existsSync(join(root, name)) }).toEqual({ file, name, isThere: true })
  }
})
