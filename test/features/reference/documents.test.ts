import { beforeAll, describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { createHeadingIds, documentPage } from '../../../src/features/reference/document-page.ts'
import { referenceHandlers } from '../../../src/features/reference/reference-handlers.ts'
import { createTestPlatform, type TestPlatform } from '../../support/platform.ts'

const folder = resolve(import.meta.dir, '../../../docs')
const files = [...readdirSync(folder).filter((file) => file.endsWith('.md')), '../README.md']
const pathsOfOthers: Readonly<Record<string, string>> = { 'README.md': '/docs', '../README.md': '/docs/start' }
const paths = files.map((file) => pathsOfOthers[file] ?? `/docs/${file.replace(/\.md$/, '')}`)

let platform: TestPlatform
beforeAll(async () => {
  platform = await createTestPlatform()
})

/** The script that all pages have is text of ours. */
const withoutScript = (page: string) => page.replace(/<script>[^]*?<\/script>/, '')
const idsOf = (page: string) => [...page.matchAll(/ id="([^"]*)"/g)].map(([, id = '']) => id)
const linksOf = (page: string) => [...withoutScript(page).matchAll(/ href="([^"]*)"/g)].map(([, href = '']) => href)

describe('every document of docs/ is a page, and the README of the repository', () => {
  test('there are many', () => expect(paths.length).toBeGreaterThan(15))
  for (const path of paths) {
    test(path, async () => {
      const response = await platform.fetch(path)
      const page = await response.text()
      expect({ status: response.status, type: response.headers.get('content-type') }).toEqual({
        status: 200,
        type: 'text/html; charset=utf-8',
      })
      expect(response.headers.get('content-security-policy')).toBe(
        (await platform.fetch('/docs/api')).headers.get('content-security-policy'),
      )
      expect(page).toMatch(/<title>[^<]{4,} - postern<\/title>/)
      expect(page.match(/<h1>[^<]+<\/h1>/g)).toHaveLength(1)
      expect(page).toContain('<meta name="viewport" content="width=device-width, initial-scale=1">')
      expect(page.match(/<script>/g)).toHaveLength(1)
      expect(withoutScript(page)).not.toMatch(
        /<script |<link|<!--| src="(?!\/docs\/[\w.-]+")| style="| on\w+=|url\(|@import/,
      )
      // A wide table scrolls within the page; the page itself does not.
      expect(page.match(/<table>/g)?.length).toBe(page.match(/<div class="wide"><table>/g)?.length)
      expect(new Set(idsOf(page)).size).toBe(idsOf(page).length)
    })

    test(`${path}: its links lead somewhere`, async () => {
      const page = await (await platform.fetch(path)).text()
      for (const href of linksOf(page)) {
        if (href.startsWith('https://')) continue
        const [target = '', part] = href.split('#')
        const response = await platform.fetch(target === '' ? path : target)
        expect({ href, status: response.status }).toEqual({ href, status: 200 })
        if (part !== undefined)
          expect({ href, ids: idsOf(await response.text()) }).toMatchObject({
            href,
            ids: expect.arrayContaining([part]),
          })
      }
    })
  }
})

test('the index leads to every page, and to the API reference', async () => {
  const links = linksOf(await (await platform.fetch('/docs')).text())
  for (const path of [...paths, '/docs/api']) expect(links).toContain(path)
})

test('what is no document is not found, and other methods are told so', async () => {
  for (const path of ['/docs/none', '/docs/README', '/docs/policy.md', '/docs/..%2Fpolicy', '/docs/constructor']) {
    expect({ path, status: (await platform.fetch(path)).status }).toEqual({ path, status: 404 })
  }
  for (const path of ['/docs', '/docs/api', '/docs/policy']) {
    const posted = await platform.fetch(path, { method: 'POST' })
    expect({ path, status: posted.status, allow: posted.headers.get('allow') }).toEqual({
      path,
      status: 405,
      allow: 'GET',
    })
    expect((await platform.fetch(`${path}?x=1`)).status).toBe(400)
    const [head, health] = await Promise.all([path, '/health'].map((one) => platform.fetch(one, { method: 'HEAD' })))
    expect({ path, head: head?.status }).toEqual({ path, head: health?.status ?? 0 })
  }
})

test('a page that is not there is a page for browsers, and JSON for everybody else', async () => {
  const navigate = { 'sec-fetch-mode': 'navigate', accept: 'text/html' }
  const rows: [init: RequestInit, isPage: boolean][] = [
    [{ headers: navigate }, true],
    [{ headers: { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' } }, true],
    [{ headers: {} }, false],
    [{ headers: { accept: '*/*' } }, false],
    [{ headers: { 'sec-fetch-mode': 'cors', accept: 'text/html' } }, false],
    [{ method: 'POST', headers: navigate }, false],
  ]
  for (const path of ['/docs/none', '/nowhere', '/tokens']) {
    for (const [init, isPage] of rows) {
      const response = await platform.fetch(path, init)
      const text = await response.text()
      // A credential is asked for by POST /tokens.
      if (path === '/tokens' && init.method === 'POST') continue
      expect({ path, init, isPage: text.startsWith('<!doctype html>') }).toEqual({ path, init, isPage })
      expect(response.status).toBe(
        path === '/tokens' || init.method === 'POST' ? (path === '/nowhere' ? 404 : 405) : 404,
      )
      if (isPage && response.status === 404) expect(linksOf(text)).toEqual(['http://localhost:8787/docs'])
      if (!isPage) expect(Object.keys(JSON.parse(text))).toEqual(['error', 'message'])
    }
  }
  const strange = await platform.fetch('/docs?utm_source=x', { headers: navigate })
  expect([strange.status, await strange.text()]).toEqual([
    400,
    expect.stringContaining('utm_source: unknown parameter'),
  ])
  expect(strange.headers.get('content-type')).toContain('text/html')
  // What needs a credential says so in JSON, in a browser too.
  expect(await (await platform.fetch('/connect/ada', { headers: navigate })).json()).toMatchObject({
    error: 'unauthorized',
  })
})

test('links stay below the path of the base URL', async () => {
  const { document } = referenceHandlers('https://example.com/gate')
  const page = await (await document(new Request('http://localhost/docs/policy'))).text()
  const links = linksOf(page).filter((href) => !href.startsWith('#'))
  expect(links.length).toBeGreaterThan(2)
  for (const href of links) expect(href).toStartWith('/gate/docs')
})

test('HTML, images and links to other schemes do not get into a page', () => {
  const markdown =
    '# T\n\n<script>a</script>\n\nx <b onclick="x">b</b> ![i](http://x/i.png) [j](javascript:alert(1)) [r](../src/a.ts) `<i>`'
  const site = { names: new Set<string>(), files: new Set<string>(), pages: [], basePath: '' }
  const page = withoutScript(documentPage(markdown, '/docs/t', site))
  expect(page).not.toMatch(/<script|onclick|<img|javascript:|\.\.\/src/)
  // The words of a picture that is not there stay.
  expect(page).toContain('<i>i</i>')
  expect(page).toContain('&lt;i&gt;')
})

test('a picture for each colour scheme is one in a page, with its words', () => {
  const picture = (name: string) => `<picture>
  <source media="(prefers-color-scheme: dark)" srcset="images/${name}-dark.webp">
  <img src="images/${name}-light.webp" alt="A room">
</picture>`
  const files = new Set(['a-dark.webp', 'a-light.webp', 'a.conf'])
  const site = { names: new Set<string>(), files, pages: [], basePath: '/gate' }
  const page = documentPage(`# T\n\n${picture('a')}\n${picture('b')}\n`, '/docs/t', site)
  expect(page).toContain(
    `<div class="pictures"><picture><source media="(prefers-color-scheme: dark)" srcset="/gate/docs/a-dark.webp"><img src="/gate/docs/a-light.webp" alt="A room"></picture>\n<i>A room</i></div>`,
  )
})

test('no picture of a document is lost on its page', async () => {
  for (const [index, path] of paths.entries()) {
    const markdown = readFileSync(resolve(folder, files[index] ?? ''), 'utf8')
    const page = await (await platform.fetch(path)).text()
    const written = markdown.match(/^!\[|<img /gm)?.length
    expect({ path, pictures: page.match(/<img /g)?.length }).toEqual({ path, pictures: written })
    for (const [, href = ''] of page.matchAll(/ (?:src|srcset)="([^"]+)"/g)) {
      const response = await platform.fetch(href)
      expect({ href, status: response.status }).toEqual({ href, status: 200 })
      expect(response.headers.get('content-type')).toStartWith('image/')
    }
  }
})

test('ids of headings are those of GitHub', () => {
  const idOf = createHeadingIds()
  expect(['Two words', 'What `a.b` is', 'Two words', 'A (2026-11-22)'].map(idOf)).toEqual([
    'two-words',
    'what-ab-is',
    'two-words-1',
    'a-2026-11-22',
  ])
})

test('the pages are in the order of their list, and each leads to the next', async () => {
  const home = await (await platform.fetch('/docs')).text()
  const [, list = ''] = /<nav class="pages"[^>]*>([^]*?)<\/nav>/.exec(home) ?? []
  const order = linksOf(list)
  expect([...order].sort()).toEqual([...paths, '/docs/api'].sort())
  for (const [at, path] of order.entries()) {
    const page = await (await platform.fetch(path)).text()
    const [, turn = ''] = /<div class="turn">([^]*?)<\/div>/.exec(page) ?? []
    expect({ path, turn: linksOf(turn) }).toEqual({
      path,
      turn: [order[at - 1], order[at + 1]].filter((one) => one !== undefined) as string[],
    })
    expect(page).toContain(`<a href="${path}" aria-current="page">`)
  }
})

test('the files of deploy/ and the description of the interface are beside the pages that lead to them', async () => {
  for (const [path, href, type] of [
    ['/docs/deployment', '/docs/postern.service', 'text/plain; charset=utf-8'],
    ['/docs/replicas', '/docs/nginx.replicas.conf', 'text/plain; charset=utf-8'],
    ['/docs', '/openapi.json', 'application/json'],
    ['/docs', '/docs/start', 'text/html; charset=utf-8'],
  ] as const) {
    expect({ path, links: linksOf(await (await platform.fetch(path)).text()) }).toEqual({
      path,
      links: expect.arrayContaining([href]),
    })
    const response = await platform.fetch(href)
    expect([href, response.status, response.headers.get('content-type')]).toEqual([href, 200, type])
  }
  const unit = readFileSync(resolve(folder, '../deploy/postern.service'), 'utf8')
  expect(await (await platform.fetch('/docs/postern.service')).text()).toBe(unit)
})

test('a search has every section of every page, at a place that is there', async () => {
  const parts = (await (await platform.fetch('/docs/index.json')).json()) as {
    part: string
    href: string
    text: string
  }[]
  expect(parts.length).toBeGreaterThan(100)
  for (const { part, href } of parts) {
    const [path = '', id] = href.split('#')
    const page = await (await platform.fetch(path)).text()
    expect({ href, part, isThere: id === undefined || idsOf(page).includes(id) }).toEqual({ href, part, isThere: true })
  }
  expect(parts.find(({ part }) => part === 'Child tokens')?.text).toContain('With a token, you can mint child tokens')
  expect(parts.find(({ href }) => href === '/docs/api#createToken')?.text).toContain('POST /tokens')
})
