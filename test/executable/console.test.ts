/** The console of the compiled executable, in a real browser (contract, 23). */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Browser, Page } from 'playwright-core'
import { openBrowser, openPage, room } from '../support/browser.ts'
import { unlimited } from '../support/executable.ts'
import { isHere } from '../support/needs.ts'
import { sampleKeys } from '../support/sample.ts'
import { sharedServer } from '../support/shared-server.ts'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const shared = sharedServer(unlimited)
const at = (path: string) => `${shared.server.url}/console${path}`

async function signIn(page: Page, path = '', key: string = sampleKeys.ada): Promise<void> {
  await page.goto(at(path))
  await room(page, 'sign-in')
  await page.fill('[data-field="key"]', key)
  await page.click('[data-action="sign-in"]')
  await page.waitForSelector('[data-action="sign-out"]')
}

const rooms: [path: string, name: string, state: string][] = [
  ['', 'overview', 'ready'],
  ['/connections?namespace=northwind', 'connections', 'ready'],
  ['/connections/northwind/crm-ada', 'connection', 'ready'],
  ['/connections/northwind/crm-ada/tools/get_account', 'tool', 'ready'],
  ['/servers?q=weather', 'servers', 'ready'],
  ['/servers/northwind/weather', 'server', 'ready'],
  ['/tokens', 'tokens', 'ready'],
  ['/namespaces', 'namespaces', 'ready'],
  ['/namespaces/northwind', 'namespace', 'ready'],
  ['/keys', 'keys', 'ready'],
  ['/audit', 'audit', 'empty'],
  ['/nowhere', 'not-found', 'ready'],
  ['/connections/northwind/nothing', 'connection', 'error'],
]

describe.skipIf(!isHere('Chromium'))('in a browser', () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await openBrowser()
  })
  afterAll(() => browser?.close())

  for (const [width, scheme] of [
    [1280, 'light'],
    [320, 'dark'],
  ] as const)
    test(`every room is there at its address, ${width} px ${scheme}, without a fault of accessibility (needs Chromium)`, async () => {
      const { context, page, faults } = await openPage(browser, shared.server.url, { width, scheme })
      await signIn(page)
      for (const [path, name, state] of rooms) {
        await page.goto(at(path))
        await room(page, name, state)
        expect(await page.locator('[data-room]').count()).toBe(1)
        expect(await page.locator('h1').count()).toBe(1)
        const isWide = await page.evaluate<boolean>('document.documentElement.scrollWidth > innerWidth')
        expect({ path, isWide }).toEqual({ path, isWide: false })
        // The page's own policy lets no script in but its own; the browser's tools may.
        const found = await page.evaluate<string[]>(
          `(() => { const module = { exports: {} }; const define = undefined; ${axe}; return axe.run().then((r) => r.violations.map((one) => one.id + ' ' + one.nodes[0].html)) })()`,
        )
        expect({ path, found }).toEqual({ path, found: [] })
      }
      expect(faults).toEqual([])
      await context.close()
    })

  test('a tool is found and called by its form, and the call is seen (needs Chromium)', async () => {
    const { context, page, faults } = await openPage(browser, shared.server.url)
    await signIn(page, '/connections/northwind/crm-ada')
    await room(page, 'connection', 'ready')
    await page.click('[data-part="tools"] [data-id="search_accounts"] a')
    await room(page, 'tool', 'ready')
    await page.locator('[data-field^="/"]').first().fill('Oslo')
    await page.click('[data-action="call"]')
    await page.waitForSelector('[data-part="result"]')
    await page.click('[data-action="go-calls"]')
    await page.waitForSelector('[data-part="rows"] [data-id]')
    expect(await page.locator('[data-part="rows"] [data-id]').first().textContent()).toContain('search_accounts')
    await page.goBack()
    await room(page, 'tool', 'ready')
    expect(faults).toEqual([])
    await context.close()
  })

  test('a policy is linted and covered while it is written, explained, minted and taken away (needs Chromium)', async () => {
    const { context, page, faults } = await openPage(browser, shared.server.url)
    await signIn(page, '/tokens')
    await room(page, 'tokens', 'ready')
    await page.fill('[data-field="policy"]', '[{"namespaces":"northwind","rpcReqMatch":{"params.name":"get_account"}}]')
    await page.waitForSelector('[data-part="findings"] li:has-text("unanchored-pattern")')
    expect(await page.textContent('[data-part="words"]')).toMatch(/^\d+ of \d+ tools on \d+ of \d+ connections/)
    await page.fill('[data-field="request.namespace"]', 'northwind')
    await page.fill('[data-field="request.connection"]', 'crm-ada')
    await page.fill('[data-field="request.tool"]', 'create_contact')
    await page.click('[data-action="explain"]')
    await page.waitForSelector('[data-part="verdict"][data-verdict="refuse"]')
    await page.click('[data-action="mint"]')
    const minted = (await page.textContent('[data-part="minted"] code')) ?? ''
    const me = () => fetch(`${shared.server.url}/me`, { headers: { authorization: `Bearer ${minted}` } })
    expect((await me()).status).toBe(200)
    await page.fill('[data-field="token"]', minted)
    await page.click('[data-action="revoke"]')
    await page.waitForSelector('text=The token is revoked')
    expect((await me()).status).toBe(401)
    // A shared address has the policy and the request, and never a token.
    expect(page.url()).not.toContain(minted)
    expect(faults).toEqual([])
    await context.close()
  })

  test('a session that ends leaves the address and the draft, for the same user (needs Chromium)', async () => {
    const { context, page } = await openPage(browser, shared.server.url)
    await signIn(page, '/tokens')
    await page.fill('[data-field="policy"]', '[{"ttl":"5m"}]')
    await context.clearCookies()
    await page.click('[data-action="mint"]')
    await room(page, 'sign-in')
    expect(page.url()).toBe(at('/tokens'))
    await page.fill('[data-field="key"]', sampleKeys.ada)
    await page.click('[data-action="sign-in"]')
    await room(page, 'tokens', 'ready')
    expect(await page.inputValue('[data-field="policy"]')).toBe('[{"ttl":"5m"}]')
    await page.click('[data-action="sign-out"]')
    await signIn(page, '/tokens', sampleKeys.linus)
    expect(await page.inputValue('[data-field="policy"]')).not.toContain('5m')
    expect(await page.evaluate<string>('JSON.stringify([localStorage, sessionStorage])')).not.toContain('sample-key')
    await context.close()
  })

  test('by keyboard alone: past the navigation, into a room, to its filter (needs Chromium)', async () => {
    const { context, page } = await openPage(browser, shared.server.url)
    await signIn(page)
    await room(page, 'overview', 'ready')
    await page.keyboard.press('g')
    await page.keyboard.press('c')
    await room(page, 'connections', 'ready')
    expect(await page.evaluate<string>('document.activeElement.tagName')).toBe('H1')
    await page.keyboard.press('/')
    expect(await page.evaluate<string>('document.activeElement.dataset.field')).toBe('q')
    await context.close()
  })
})

test('the document and its files say what a browser may do with them', async () => {
  const document = await fetch(at('/connections/a/b'))
  const text = await document.text()
  expect(document.headers.get('content-security-policy')).toBe(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
  )
  expect(document.headers.get('x-frame-options')).toBe('DENY')
  expect(text).not.toMatch(/<script>|style=|\bon\w+=/)
  const etag = document.headers.get('etag') ?? ''
  expect((await fetch(at(''), { headers: { 'if-none-match': etag } })).status).toBe(304)
  const files = [...text.matchAll(/(?:src|href)="([^"]*\/assets\/[^"]+)"/g)].map(([, path]) => path)
  expect(files).toHaveLength(2)
  let bytes = 0
  for (const path of files) {
    const file = await fetch(`${shared.server.url}${path}`, { decompress: false } as RequestInit)
    expect([file.status, file.headers.get('cache-control')]).toEqual([200, 'public, max-age=31536000, immutable'])
    bytes += (await file.arrayBuffer()).byteLength
  }
  expect(bytes).toBeLessThan(80 * 1000)
  expect((await fetch(at('/assets/none.js'))).status).toBe(404)
})
