/** The console of the compiled executable, in a real browser (contract, 23). */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { openBrowser, openPage, room, signInAt } from '../support/browser.ts'
import { type Server, startServer, unlimited, withoutRates, workplace } from '../support/executable.ts'
import { isHere } from '../support/needs.ts'
import { sampleKeys } from '../support/sample.ts'
import { sharedServer } from '../support/shared-server.ts'
import { until } from '../support/until.ts'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const shared = sharedServer(unlimited)
const at = (path: string) => `${shared.server.url}/console${path}`

const signIn = (page: Page, path = '', key: string = sampleKeys.ada) => signInAt(page, at(path), key)

const rooms: [path: string, name: string, state?: string][] = [
  ['', 'overview', 'ready'],
  ['/connections?namespace=northwind', 'connections', 'ready'],
  ['/connections/northwind/crm-ada', 'connection', 'ready'],
  ['/connections/northwind/crm-ada/tools/get_account', 'tool', 'ready'],
  ['/servers?q=weather', 'servers', 'ready'],
  ['/servers/northwind/weather', 'server', 'ready'],
  ['/tokens', 'tokens', 'ready'],
  // Another test may have made calls.
  ['/calls', 'calls'],
  ['/namespaces', 'namespaces', 'ready'],
  ['/namespaces/northwind', 'namespace', 'ready'],
  ['/connect', 'connect', 'ready'],
  ['/connect/northwind/crm-ada', 'connect', 'ready'],
  ['/organizations/org_northwind', 'organization', 'ready'],
  ['/keys', 'keys', 'ready'],
  ['/audit', 'audit', 'empty'],
  ['/nowhere', 'not-found', 'ready'],
  ['/connections/northwind/nothing', 'connection', 'error'],
]

/** What axe finds in a page, which has it beside its own scripts. */
const faultsIn = (page: Page, options: object) =>
  page.evaluate<string[]>(
    `axe.run(${JSON.stringify({ resultTypes: ['violations'], ...options })}).then((r) => r.violations.map((one) => one.id + ' ' + one.nodes[0].html))`,
  )

/** What is smaller than this and can be clicked, but for links within sentences. A box is as large as its label. */
const smallTargets = (page: Page, pixels: number) =>
  page.evaluate<string[]>(`[...document.querySelectorAll('a[href], button, input, select, textarea, summary')]
    .filter((one) => one.checkVisibility({ visibilityProperty: true }) && !one.matches('.skip'))
    .filter((one) => !(one.matches('a') && one.closest('p, small, dd')))
    .map((one) => [one, (one.closest('label:has(> input[type="checkbox"])') ?? one).getBoundingClientRect()])
    .filter(([, { width, height }]) => width + 0.5 < ${pixels} || height + 0.5 < ${pixels})
    .map(([one, { width, height }]) => Math.round(width) + ' x ' + Math.round(height) + ': ' + one.outerHTML.slice(0, 120))`)

async function isWiderThan(page: Page, width: number): Promise<boolean> {
  await page.setViewportSize({ width, height: 900 })
  return page.evaluate<boolean>('document.documentElement.scrollWidth > innerWidth')
}

let browser: Browser
beforeAll(async () => {
  if (isHere('Chromium')) browser = await openBrowser()
})
afterAll(() => browser?.close())

describe.skipIf(!isHere('Chromium'))('in a browser', () => {
  for (const width of [1280, 320])
    test(`every room is there at its address, ${width} px, without a fault of accessibility in either scheme (needs Chromium)`, async () => {
      const { context, page, faults } = await openPage(browser, shared.server.url, { width })
      await page.addInitScript({ content: axe })
      await signIn(page)
      for (const [path, name, state] of rooms) {
        await page.goto(at(path))
        await room(page, name, state)
        expect(await page.locator('[data-room]').count()).toBe(1)
        expect(await page.locator('h1').count()).toBe(1)
        const numbers = page.evaluate<string>('getComputedStyle(document.querySelector("main")).fontVariantNumeric')
        expect(await numbers).toBe('tabular-nums')
        const texts = async (part: string) => page.locator(`.as [data-part="${part}"]`).count()
        expect({ path, commands: await texts('command') }).toEqual({ path, commands: await texts('curl') })
        for (const other of width === 320 ? [320] : [2560, 1920, 960, 768, 375, 320, 1280])
          expect({ path, other, isWide: await isWiderThan(page, other) }).toEqual({ path, other, isWide: false })
        expect({ path, found: await faultsIn(page, {}) }).toEqual({ path, found: [] })
        // Of all rules, contrast alone depends on the scheme.
        await page.emulateMedia({ colorScheme: 'dark' })
        expect({ path, found: await faultsIn(page, { runOnly: ['color-contrast'] }) }).toEqual({ path, found: [] })
        await page.emulateMedia({ colorScheme: 'light' })
      }
      expect(faults).toEqual([])
      await context.close()
    })

  for (const isTouched of [true, false])
    test(`what can be clicked is large enough for a ${isTouched ? 'finger' : 'mouse'} (needs Chromium)`, async () => {
      const { context, page, faults } = await openPage(browser, shared.server.url, { width: 768, isTouched })
      await signIn(page)
      for (const [path, name, state] of rooms) {
        await page.goto(at(path))
        await room(page, name, state)
        await page.evaluate('for (const one of document.querySelectorAll("details")) one.open = true')
        expect({ path, small: await smallTargets(page, isTouched ? 44 : 24) }).toEqual({ path, small: [] })
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
    await page.click('nav [data-action="go-calls"]')
    await page.waitForSelector('[data-part="rows"] [data-id]')
    expect(await page.locator('[data-part="rows"] [data-id]').first().textContent()).toContain('search_accounts')
    await page.goBack()
    await room(page, 'tool', 'ready')
    expect(faults).toEqual([])
    await context.close()
  })

  test('the filters of an address are those of the interface, and fields change them (needs Chromium)', async () => {
    const { context, page, faults } = await openPage(browser, shared.server.url)
    await signIn(page, '/connections?namespace=northwind&metadata.team=wholesale')
    await room(page, 'connections', 'ready')
    const ids = () =>
      page.$$eval('[data-part="rows"] [data-id]', (rows) => rows.map((one) => one.getAttribute('data-id')))
    await page.waitForSelector('[data-part="rows"][data-end="true"]')
    expect(await ids()).toContain('northwind/crm-ada')
    expect(await ids()).not.toContain('northwind/weather-ada')
    expect(await page.inputValue('[data-field="metadata"]')).toBe('team=wholesale')
    await page.fill('[data-field="metadata"]', 'team=nobody')
    await room(page, 'connections', 'empty')
    expect(new URL(page.url()).searchParams.get('metadata.team')).toBe('nobody')
    await page.fill('[data-field="metadata"]', '')
    await page.waitForSelector('[data-id="northwind/weather-ada"]')
    // Typed key by key: the list is read again beneath a field that keeps the focus.
    await page.click('nav [data-action="go-servers"]')
    await page.click('[data-field="q"]')
    await page.keyboard.type('weather', { delay: 20 })
    expect(await page.inputValue('[data-field="q"]')).toBe('weather')
    await page.waitForSelector('[data-id="northwind/weather"]')
    await page.goto(at('/connections?namespace=northwind'))
    await page.click('[data-id="northwind/weather-ada"] a')
    await page.click('main [data-action="go-calls"]')
    await room(page, 'calls')
    expect(await page.inputValue('[data-field="connection"]')).toBe('weather-ada')
    await page.fill('[data-field="connection"]', '')
    await page.waitForURL((url) => url.search === '?namespace=northwind')
    // One that no field has stands beside them.
    await page.goto(at('/calls?namespace=northwind&user=nobody'))
    await page.click('[data-action="remove"][data-for="user"]')
    expect(new URL(page.url()).search).toBe('?namespace=northwind')
    expect(faults).toEqual([])
    await context.close()
  })

  test('a policy is linted and covered while it is written, explained, minted and taken away (needs Chromium)', async () => {
    const { context, page, faults } = await openPage(browser, shared.server.url)
    await signIn(page, '/tokens')
    await room(page, 'tokens', 'ready')
    // A text that the form cannot read never makes the policy wider: nothing is minted.
    await page.fill('[data-field="/0/rpcReqMatch"]', 'get_account')
    await page.click('[data-action="mint"]')
    await page.waitForSelector('[data-field="/0/rpcReqMatch"]:focus')
    expect(await page.locator('[data-part="minted"]').count()).toBe(0)
    await page.fill('[data-field="/0/rpcReqMatch"]', 'params.arguments.id=^a=b$')
    await page.fill('[data-field="/0/rpcReqMatch/params.name"]', '^get_account$')
    const written = async () => JSON.parse(await page.inputValue('[data-field="policy"]'))[0].rpcReqMatch
    expect(await written()).toEqual({ 'params.name': '^get_account$', 'params.arguments.id': '^a=b$' })
    await page.fill('[data-field="/0/rpcReqMatch"]', '')
    expect(await written()).toEqual({ 'params.name': '^get_account$' })
    await page.fill('[data-field="/0/rpcReqMatch/params.name"]', '')
    expect(await written()).toBeUndefined()
    await page.fill('[data-field="/0/rpcReqMatch"]', 'params.name=^get_')
    expect(await page.inputValue('[data-field="/0/rpcReqMatch/params.name"]')).toBe('^get_')
    // Nothing that somebody looks at moves while a policy is typed.
    await page.fill('[data-field="policy"]', '[{"namespaces":')
    await page.waitForSelector('[data-field="/0/rpcReqMatch"]:disabled')
    await page.fill('[data-field="policy"]', '[{"namespaces":"northwind","rpcReqMatch":{"params.name":"get_account"}}]')
    await page.waitForSelector('[data-field="/0/rpcReqMatch"]:enabled')
    await page.waitForSelector('[data-part="findings"] li:has-text("unanchored-pattern")')
    expect(await page.textContent('[data-part="words"]')).toMatch(/^\d+ of \d+ tools on \d+ of \d+ connections/)
    await page.fill('[data-field="request.namespace"]', 'northwind')
    await page.fill('[data-field="request.connection"]', 'crm-ada')
    await page.fill('[data-field="request.tool"]', 'create_contact')
    await page.click('[data-action="explain"]')
    await page.waitForSelector('[data-part="verdict"][data-verdict="refuse"]')
    // A verdict is shown beside its own request alone, all of which a link has.
    await page.fill('[data-field="request.arguments"]', '{"name":"Ada"}')
    await page.waitForSelector('[data-part="verdict"]', { state: 'detached' })
    expect(new URL(page.url()).searchParams.get('arguments')).toBe('{"name":"Ada"}')
    await page.fill('[data-field="request.arguments"]', '')
    await page.waitForSelector('[data-part="verdict"][data-verdict="refuse"]')
    await page.click('[data-action="mint"]')
    const minted = (await page.textContent('[data-part="minted"] code')) ?? ''
    const me = () => fetch(`${shared.server.url}/me`, { headers: { authorization: `Bearer ${minted}` } })
    expect((await me()).status).toBe(200)
    await page.fill('[data-field="token"]', minted)
    await page.click('[data-action="revoke"]')
    await page.waitForSelector('text=The token is revoked')
    expect((await me()).status).toBe(401)
    // One that is revoked beside it gives its place to these words, and the next one has its own.
    await page.click('[data-action="remove"]')
    await page.waitForSelector('[data-part="minted"]', { state: 'detached' })
    await page.click('[data-action="mint"]')
    await page.waitForSelector('[data-part="minted"]')
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
    // On a busy machine a request that the draft has caused may find out first, and the button is gone.
    void page.click('[data-action="mint"]').catch(() => {})
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

  test('the end of a session is noticed wherever something is written (needs Chromium)', async () => {
    const { context, page } = await openPage(browser, shared.server.url)
    for (const [path, field, text, action] of [
      ['/keys', 'name', 'typed', 'create'],
      ['/servers?new=yes', 'source', 'https://mcp.example.com/mcp', 'save'],
      ['/namespaces?new=yes', 'name', 'typed', 'save'],
    ] as const) {
      await signIn(page, path)
      if (path.startsWith('/servers')) await page.fill('[data-field="name"]', 'ada/typed')
      await page.fill(`[data-field="${field}"]`, text)
      await context.clearCookies()
      // On a busy machine the stream of events may find out first, and the button is gone.
      void page.click(`main form [data-action="${action}"]`).catch(() => {})
      await room(page, 'sign-in')
      expect(page.url()).toBe(at(path))
      await page.fill('[data-field="key"]', sampleKeys.ada)
      await page.click('[data-action="sign-in"]')
      await page.waitForSelector(`[data-field="${field}"]`)
      expect(await page.inputValue(`[data-field="${field}"]`)).toBe(text)
      await page.click('[data-action="sign-out"]')
      await room(page, 'sign-in')
    }
    await context.close()
  })

  test('a sign-out ends the session in all tabs, and one that fails says so (needs Chromium)', async () => {
    const { context, page } = await openPage(browser, shared.server.url)
    await signIn(page, '/tokens')
    await page.fill('[data-field="token"]', 'a token of mine')
    const other = await context.newPage()
    await other.goto(at(''))
    await room(other, 'overview')
    await other.route('**/console/session', (route) =>
      route.request().method() === 'DELETE' ? route.abort() : route.continue(),
    )
    await other.click('[data-action="sign-out"]')
    await other.waitForSelector('header .wrong:has-text("postern does not answer")')
    await room(page, 'tokens')
    await other.unroute('**/console/session')
    await other.click('[data-action="sign-out"]')
    await room(other, 'sign-in')
    await room(page, 'sign-in')
    expect(await page.content()).not.toContain('a token of mine')
    await context.close()
  })

  test('a client that arrives is seen (needs Chromium)', async () => {
    const { context, page, faults } = await openPage(browser, shared.server.url)
    await signIn(page, '/connect/northwind/weather-ada')
    await page.waitForSelector('[data-part="waiting"][data-state="waiting"]')
    const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'a-client', version: '1' } }
    await fetch(`${shared.server.url}/connect/northwind/weather-ada/mcp`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${sampleKeys.ada}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params }),
    })
    await page.waitForSelector('[data-part="waiting"][data-state="arrived"]')
    expect(await page.textContent('[data-part="waiting"]')).toStartWith('“a-client” has arrived for “ada”')
    expect(faults).toEqual([])
    await context.close()
  })

  test('ten tabs share one stream, and all of them hear (needs Chromium)', async () => {
    const { context, page, faults } = await openPage(browser, shared.server.url)
    await signIn(page, '/calls')
    const tabs = [page]
    while (tabs.length < 10) {
      const tab = await context.newPage()
      await tab.goto(at('/calls'))
      await room(tab, 'calls')
      tabs.push(tab)
    }
    const call = () =>
      fetch(`${shared.server.url}/connect/northwind/weather-ada/.tools/get_forecast`, {
        method: 'POST',
        headers: { authorization: `Bearer ${sampleKeys.ada}`, 'content-type': 'application/json' },
        body: '{"location":"Oslo"}',
      })
    const id = (await call()).headers.get('x-request-id') ?? ''
    for (const tab of tabs) {
      // A tab in the background paints nothing until it is looked at.
      await tab.bringToFront()
      await tab.waitForSelector(`[data-part="rows"] [data-id="${id}"]`)
    }
    // The tab that read for all of them is closed, and another one reads on.
    await page.close()
    const [other, ...others] = tabs.slice(1) as [Page, ...Page[]]
    await other.bringToFront()
    await other.waitForSelector('[role="status"]:has-text("Some calls may be missing")')
    const next = (await call()).headers.get('x-request-id') ?? ''
    await other.waitForSelector(`[data-part="rows"] [data-id="${next}"]`)
    expect([others.length, faults]).toEqual([8, []])
    await context.close()
  })

  test('the list shows each call as it happens, though its client repeats a request id (needs Chromium)', async () => {
    const call = (connection: string, tool: string) =>
      fetch(`${shared.server.url}/connect/northwind/${connection}/.tools/${tool}`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${sampleKeys.ada}`,
          'content-type': 'application/json',
          'x-request-id': 'twice',
        },
        body: '{"location":"Oslo"}',
      })
    await call('weather-ada', 'get_forecast')
    const { context, page } = await openPage(browser, shared.server.url)
    await signIn(page, '/calls')
    await page.waitForSelector('[data-id="twice"]:has-text("get_forecast")')
    await page.waitForSelector('[data-part="live"][data-state="live"]')
    await call('weather-ada', 'list_alerts')
    await page.waitForSelector('[data-id="twice"]:has-text("list_alerts")')
    expect(await page.locator('[data-id="twice"]').count()).toBe(2)
    await context.close()
  })

  test('a connection that somebody else makes is offered in a list that had all (needs Chromium)', async () => {
    const { context, page, faults } = await openPage(browser, shared.server.url)
    await signIn(page, '/connections?namespace=ada')
    await room(page, 'connections')
    const url = `${shared.server.url}/connect/ada/made-elsewhere`
    const headers = { authorization: `Bearer ${sampleKeys.ada}`, 'content-type': 'application/json' }
    const missing = page.locator('text=Some changes may be missing here')
    let name = 0
    // Again, as long as the page may not have begun to listen.
    await until(async () => {
      name += 1
      const body = JSON.stringify({ mcpUrl: 'https://example.com/mcp', name: `${name}` })
      expect((await fetch(url, { method: 'PUT', headers, body })).ok).toBe(true)
      return (await missing.count()) > 0
    })
    await page.click('[role="status"] [data-action="retry"]')
    await page.waitForSelector('[data-id="ada/made-elsewhere"]')
    expect(await missing.count()).toBe(0)
    await fetch(url, { method: 'DELETE', headers })
    expect(faults).toEqual([])
    await context.close()
  })

  test('calls that were missed are offered, after a pause and for somebody who comes back (needs Chromium)', async () => {
    const { context, page, faults } = await openPage(browser, shared.server.url)
    await signIn(page, '/calls?namespace=northwind')
    await room(page, 'calls')
    // The tab that reads events passes each on to the others.
    await page.evaluate(`heard = 0;
      new BroadcastChannel('postern events ').onmessage = ({ data }) => {
        if (data.type !== 'call') return
        heard += 1
        last = data
      }`)
    const headers = { authorization: `Bearer ${sampleKeys.ada}`, 'content-type': 'application/json' }
    const missed = page.locator('text=Some calls may be missing here')
    const made = async () => {
      const path = '/connect/northwind/inventory-us-west/.tools/list_low_stock'
      const before = await page.evaluate<number>('heard')
      const init = { method: 'POST', headers, body: '{}' }
      const { status, headers: own } = await fetch(`${shared.server.url}${path}`, init)
      expect(status).toBe(200)
      await until(async () => (await page.evaluate<number>('heard')) > before)
      return `[data-part="rows"] [data-id="${own.get('x-request-id')}"]`
    }
    await page.waitForSelector('[data-part="live"][data-state="live"]')
    await page.waitForSelector(await made())
    for (const [leave, comeBack] of [
      [() => page.click('[data-action="pause"]'), () => page.click('[data-action="pause"]')],
      [() => page.click('nav [data-action="go-keys"]'), () => page.goBack()],
    ] as const) {
      expect(await missed.count()).toBe(0)
      await leave()
      const row = await made()
      await comeBack()
      await missed.waitFor()
      await page.click('[role="status"] [data-action="retry"]')
      await page.waitForSelector(row)
    }
    // One that arrives before the browser has painted that the list is paused.
    await page.evaluate(`document.querySelector('[data-action="pause"]').click()
      new BroadcastChannel('postern events ').postMessage(last)`)
    await page.waitForSelector('[data-part="live"][data-state="paused"]')
    await page.click('[data-action="pause"]')
    await missed.waitFor()
    expect(faults).toEqual([])
    await context.close()
  })

  test('back and forward lead through filters, of which a typed one is one (needs Chromium)', async () => {
    const { context, page } = await openPage(browser, shared.server.url)
    await signIn(page, '/calls')
    await room(page, 'calls')
    await page.selectOption('[data-field="outcome"]', 'ok')
    await page.selectOption('[data-field="outcome"]', 'refused')
    await page.locator('[data-field="q"]').pressSequentially('list_low_stock')
    await page.waitForURL(({ search }) => search.endsWith('&tool=list_low_stock'))
    for (const wanted of ['?outcome=refused', '?outcome=ok', '']) {
      await page.goBack()
      await page.waitForURL(({ search }) => search === wanted)
      await room(page, 'calls')
    }
    expect(await page.inputValue('[data-field="outcome"]')).toBe('')
    for (let steps = 0; steps < 3; steps += 1) await page.goForward()
    await page.waitForURL(({ search }) => search === '?outcome=refused&tool=list_low_stock')
    expect(await page.inputValue('[data-field="q"]')).toBe('list_low_stock')
    await context.close()
  })

  test('the audit log is asked for events that there are, while somebody still types (needs Chromium)', async () => {
    const { context, page, faults } = await openPage(browser, shared.server.url)
    await signInAt(page, at('/audit'), sampleKeys.operator)
    await room(page, 'audit', 'ready')
    await page.locator('[data-field="q"]').pressSequentially('signin.')
    await room(page, 'audit', 'empty')
    expect(await page.locator('[data-room="audit"]').textContent()).toContain('No event has this name.')
    await page.locator('[data-field="q"]').pressSequentially('session')
    await room(page, 'audit', 'ready')
    const events = await page.$$eval('[data-part="rows"] code:first-child', (all) => all.map((one) => one.textContent))
    expect(events.length).toBeGreaterThan(0)
    expect(events).toEqual(events.map(() => 'signin.session'))
    expect(faults).toEqual([])
    await context.close()
  })

  test('the search of the documents finds a message as it was printed, and an operation (needs Chromium)', async () => {
    const { context, page, faults } = await openPage(browser, shared.server.url)
    await page.goto(`${shared.server.url}/docs`)
    const found = page.locator('.found')
    const first = async (text: string) => {
      await page.fill('input[type="search"]', '')
      await found.waitFor({ state: 'hidden' })
      await page.fill('input[type="search"]', text)
      return found.locator('a').first().getAttribute('href')
    }
    const message = '10.0.0.8 is not a public address: to allow it, restart postern with --allow-upstream 10.0.0.8:80'
    const taken = 'port 8787 on 127.0.0.1 is taken: stop what uses it, or choose another with --port'
    for (const text of [message, 'The view does not allow this', taken])
      expect([text, await first(text)]).toEqual([text, expect.stringContaining('/docs/troubleshooting')])
    // Not a part of another word, as in "import".
    expect(await first('port')).not.toContain('import')
    expect(await first('createToken')).toBe('/docs/api#createToken')
    await page.fill('input[type="search"]', 'zyxwvut')
    await page.waitForSelector('text=Nothing was found')
    expect(faults).toEqual([])
    await context.close()
  })

  test('deleting asks first, and gives the focus back (needs Chromium)', async () => {
    const { context, page, faults } = await openPage(browser, shared.server.url)
    await signIn(page, '/servers/northwind/weather')
    await room(page, 'server', 'ready')
    await page.selectOption('[data-field="namespace"]', 'northwind')
    // An id that is taken is told beside it, and has the focus.
    await page.fill('[data-field="id"]', 'weather-ada')
    await page.click('[data-action="create"]')
    await page.waitForSelector('[data-field="id"]:focus')
    expect(await page.textContent('.field:has([data-field="id"]) [role="alert"]')).toContain('is there already')
    await page.fill('[data-field="id"]', 'made-here')
    await page.check('[data-field="mock"]')
    await page.click('[data-action="create"]')
    await room(page, 'connection', 'ready')
    await page.click('[data-action="delete"]')
    await page.waitForSelector('dialog[open]')
    await page.keyboard.press('Escape')
    await page.waitForSelector('dialog', { state: 'detached' })
    await page.waitForSelector('[data-action="delete"]:focus')
    await page.click('[data-action="delete"]')
    await page.click('dialog [data-action="delete"]')
    await room(page, 'connections')
    await page.waitForSelector('text=made-here was deleted.')
    expect(await page.locator('[data-id="northwind/made-here"]').count()).toBe(0)
    const server = `${shared.server.url}/servers/ada/old`
    const headers = { authorization: `Bearer ${sampleKeys.ada}`, 'content-type': 'application/json' }
    const body = JSON.stringify({ mcpUrl: 'https://old.example.com/mcp' })
    expect((await fetch(server, { method: 'PUT', headers, body })).status).toBe(201)
    await page.goto(at('/servers/ada/old'))
    await page.waitForSelector('text=https://old.example.com/mcp')
    await page.click('[data-action="delete"]')
    await page.click('dialog [data-action="delete"]')
    await page.waitForSelector('text=ada/old was deleted.')
    expect((await fetch(server, { headers })).status).toBe(404)
    // Much is lost with a namespace: its name is typed first.
    const namespace = `${shared.server.url}/namespaces/made-there`
    expect((await fetch(namespace, { method: 'PUT', headers })).status).toBe(201)
    await page.goto(at('/namespaces/made-there'))
    await page.click('[data-action="delete"]')
    expect(await page.getAttribute('dialog [data-action="delete"]', 'data-reason')).toBe('Type made-there first')
    await page.fill('dialog [data-field="confirm"]', 'made-there')
    await page.click('dialog [data-action="delete"]')
    await page.waitForSelector('text=made-there was deleted.')
    expect((await fetch(namespace, { headers })).status).toBe(404)
    expect(faults).toEqual([])
    await context.close()
  })

  test('an organization is deleted by its owner, who types its name (needs Chromium)', async () => {
    const made = await fetch(`${shared.server.url}/organizations/org_gone`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${sampleKeys.operator}`, 'content-type': 'application/json' },
      body: JSON.stringify({ owner: 'ada' }),
    })
    expect(made.status).toBe(201)
    const { context, page, faults } = await openPage(browser, shared.server.url)
    await signIn(page, '/organizations/org_gone')
    await page.click('main .actions [data-action="delete"]')
    await page.fill('[data-field="confirm"]', 'org_gone')
    await page.click('dialog [data-action="delete"]')
    await room(page, 'namespaces')
    expect(await page.locator('[data-id="org_gone"]').count()).toBe(0)
    expect(faults).toEqual([])
    await context.close()
  })

  test('a connection is tested wherever its health is, and a draft keeps no secret (needs Chromium)', async () => {
    const { context, page, faults } = await openPage(browser, shared.server.url)
    await signIn(page)
    await room(page, 'overview', 'ready')
    const asked = page.waitForRequest((request) => request.method() === 'POST')
    await page.click('[data-part="attention"] [data-level="down"] [data-action="resolve"]')
    expect((await asked).url()).toEndWith('/.test')
    await page.goto(at('/servers?new=yes'))
    await page.fill('[data-field="source"]', '{"headers":{"authorization":"Bearer hush"}}')
    await page.fill('[data-field="name"]', 'ada/typed')
    await page.waitForFunction(`Object.values(sessionStorage).join().includes('ada/typed')`)
    expect(await page.evaluate<string>('Object.values(sessionStorage).join()')).not.toContain('hush')
    await page.goto(at('/connections/northwind/inventory-dubai'))
    await page.waitForSelector('text=an uplink, whose server dials in')
    expect(faults).toEqual([])
    await context.close()
  })

  test('a server that wants a sign-in is not asked for its tools (needs Chromium)', async () => {
    const { context, page } = await openPage(browser, shared.server.url)
    const asked: string[] = []
    page.on('request', (request) => asked.push(new URL(request.url()).pathname))
    await signIn(page, '/connections/northwind/mail-hana')
    await page.waitForSelector('[data-part="tools"] >> text=They are known once somebody has signed in.')
    expect(asked).toContain('/connect/northwind/.health')
    expect(asked).not.toContain('/connect/northwind/mail-hana/.tools')
    await context.close()
  })

  test('a user without a namespace is shown where to begin (needs Chromium)', async () => {
    const made = await fetch(`${shared.server.url}/api-keys`, {
      method: 'POST',
      headers: { authorization: `Bearer ${sampleKeys.operator}`, 'content-type': 'application/json' },
      body: JSON.stringify({ userId: 'somebody-new' }),
    })
    const { key } = (await made.json()) as { key: string }
    const { context, page } = await openPage(browser, shared.server.url)
    await signIn(page, '', key)
    for (const name of ['overview', 'connections', 'connect']) {
      await page.goto(at(name === 'overview' ? '' : `/${name}`))
      await room(page, name, 'empty')
      await page.waitForSelector('main a[href$="/namespaces?new=yes"]')
    }
    expect(await page.locator('[data-part="waiting"]').count()).toBe(0)
    await page.goto(at('/connections'))
    await page.waitForSelector('[data-action="create"][data-reason="Make a namespace first"]')
    await context.close()
  })

  test('by keyboard alone: past the navigation, into a room, to its filter (needs Chromium)', async () => {
    const { context, page } = await openPage(browser, shared.server.url)
    await signIn(page)
    await room(page, 'overview', 'ready')
    await page.focus('.skip')
    await page.keyboard.press('Enter')
    await page.waitForSelector('main:focus')
    expect(new URL(page.url()).hash).toBe('#main')
    await page.keyboard.press('g')
    await page.keyboard.press('c')
    await room(page, 'connections', 'ready')
    await page.waitForSelector('h1:focus')
    await page.keyboard.press('/')
    await page.waitForSelector('[data-field="q"]:focus')
    // Past the field of metadata, into the list.
    await page.keyboard.press('Tab')
    await page.keyboard.press('Tab')
    await page.keyboard.press('?')
    await page.waitForSelector('dialog[aria-label="Keys"]')
    await page.keyboard.press('Escape')
    await page.waitForSelector('dialog', { state: 'detached' })
    // Where nothing is searched, to the first filter.
    await page.keyboard.press('g')
    await page.keyboard.press('i')
    await room(page, 'connect', 'ready')
    await page.keyboard.press('/')
    await page.waitForSelector('[data-field="namespace"]:focus')
    await context.close()
  })

  test('by keyboard alone: into every room, and into the things that its lists name (needs Chromium)', async () => {
    const { context, page } = await openPage(browser, shared.server.url)
    await signIn(page)
    await room(page, 'overview', 'ready')
    const enter = async (letter: string, name: string) => {
      await page.keyboard.press('g')
      await page.keyboard.press(letter)
      await room(page, name)
      await page.waitForSelector('h1:focus')
    }
    /** Goes on with Tab until a link to such a room has the focus, and presses Enter. */
    const follow = async (path: string, name: string) => {
      const link = `a[href*="/console/${path}"]`
      await page.waitForSelector(`main ${link}`)
      while ((await page.locator(`main ${link}:focus`).count()) === 0) await page.keyboard.press('Tab')
      await page.keyboard.press('Enter')
      await room(page, name)
      await page.waitForSelector('h1:focus')
    }
    for (const [letter, name] of Object.entries({ k: 'keys', t: 'tokens', a: 'audit', i: 'connect', o: 'overview' }))
      await enter(letter, name)
    await enter('s', 'servers')
    await follow('servers/northwind/weather', 'server')
    await enter('n', 'namespaces')
    await follow('organizations/', 'organization')
    await enter('n', 'namespaces')
    await follow('namespaces/northwind', 'namespace')
    await follow('connections?namespace=northwind', 'connections')
    await follow('connections/northwind/crm-ada', 'connection')
    await follow('connections/northwind/crm-ada/tools/get_account', 'tool')
    // The call itself, and its story.
    while ((await page.locator('[data-field="/id"]:focus').count()) === 0) await page.keyboard.press('Tab')
    await page.keyboard.type('ACC-10001')
    await page.keyboard.press('Enter')
    await page.waitForSelector('[data-part="result"]')
    // Letters are text in a field: they lead on from its button.
    await page.keyboard.press('Tab')
    await enter('l', 'calls')
    await follow('calls/', 'call')
    await context.close()
  })
})

describe.skipIf(!isHere('Chromium'))('texts of strangers', () => {
  const hostile = `<img src=x onerror="window.isHurt=1"><script>window.isHurt=1</script>\u202e\u200b\u{e0041} {{7*7}}`
  const key = 'a-key-of-ada-who-reads-hostile-texts'
  // Without a slash, which stands for a dot in the name of a tool.
  const stranger = '<img src=x>\u202e\u200b {{7*7}}'
  const strangersKey = 'a-key-of-somebody-with-a-hostile-name'
  const tool = {
    name: 'harm',
    description: `${hostile} [link](javascript:alert(1)) https://evil.example`,
    inputSchema: {
      type: 'object',
      properties: { [hostile]: { type: 'string', title: hostile, description: hostile, default: hostile } },
    },
  }
  const place = workplace()
  let server: Server
  beforeAll(async () => {
    const company = {
      organizations: [
        {
          ...{ organizationId: 'org', name: hostile },
          members: [
            { userId: 'ada', role: 'owner' },
            { userId: stranger, role: 'admin' },
          ],
        },
      ],
      namespaces: [{ namespace: 'acme', organizationId: 'org', title: hostile, description: hostile }],
      apiKeys: [
        { userId: 'ada', key, name: '\u202e<b>key</b>', operator: true },
        { userId: stranger, key: strangersKey },
      ],
      servers: [
        {
          ...{ qualifiedName: 'acme/harm', displayName: hostile, description: hostile, remote: true },
          ...{
            connections: [],
            tools: [tool, { name: stranger, inputSchema: { type: 'object' } }],
            iconUrl: 'https://evil.example/icon.svg',
          },
        },
      ],
      connections: [
        {
          ...{ namespace: 'acme', connectionId: 'harm', mcpUrl: 'https://evil.example/mcp', server: 'acme/harm' },
          ...{ name: hostile, metadata: { [hostile]: hostile }, mock: { enabled: true } },
          iconUrl: 'https://evil.example/icon.svg',
        },
        {
          ...{ namespace: 'acme', connectionId: 'broken', mcpUrl: 'https://evil.example/mcp' },
          status: { state: 'error', message: hostile },
        },
      ],
    }
    mkdirSync(join(place.folder, 'hostile'))
    writeFileSync(join(place.folder, 'hostile/company.json'), JSON.stringify(company))
    server = await startServer(place, ['--fixtures', join(place.folder, 'hostile'), ...withoutRates])
  })
  afterAll(() => server?.kill('SIGKILL'))

  test('stay text in every room, and nothing of them is loaded or run (needs Chromium)', async () => {
    // A call of a tool with such a name by a user with such a name, and what the audit log says of the same.
    const asStranger = { authorization: `Bearer ${strangersKey}`, 'content-type': 'application/json' }
    const called = await fetch(`${server.url}/connect/acme/harm/.tools/${encodeURIComponent(stranger)}`, {
      ...{ method: 'POST', headers: { ...asStranger, 'x-request-id': 'of-a-stranger' }, body: '{}' },
    })
    expect({ status: called.status, body: await called.text() }).toMatchObject({ status: 200 })
    for (const [method, body] of [
      ['PUT', JSON.stringify({ mcpUrl: 'https://evil.example/mcp' })],
      ['DELETE', null],
    ] as const)
      await fetch(`${server.url}/connect/acme/gone`, { method, headers: asStranger, body })
    const { context, page, faults } = await openPage(browser, server.url)
    await signInAt(page, `${server.url}/console`, key)
    // These show no text of strangers, wherever there is one.
    const others: [path: string, name: string][] = [
      ['/connect/acme/harm', 'connect'],
      ['/tokens', 'tokens'],
      ['/namespaces', 'namespaces'],
      [`/${encodeURIComponent(hostile)}`, 'not-found'],
    ]
    const marked: [path: string, name: string][] = [
      ['', 'overview'],
      ['/connections', 'connections'],
      ['/connections/acme/harm', 'connection'],
      ['/connections/acme/harm/tools/harm', 'tool'],
      [`/connections/acme/harm/tools/${encodeURIComponent(stranger)}`, 'tool'],
      ['/servers', 'servers'],
      ['/servers/acme/harm', 'server'],
      ['/calls', 'calls'],
      ['/calls/of-a-stranger', 'call'],
      ['/audit', 'audit'],
      ['/namespaces/acme', 'namespace'],
      ['/organizations/org', 'organization'],
      ['/keys', 'keys'],
    ]
    for (const [path, name] of [...others, ...marked]) {
      await page.goto(`${server.url}/console${path}`)
      await room(page, name)
      if (!others.some(([one]) => one === path)) await page.waitForSelector('.mark')
      const seen = await page.evaluate<object>(
        `({ isHurt: window.isHurt, images: document.images.length, scripts: document.scripts.length,
           links: [...document.links].filter((one) => /^(?!https?:)/.test(one.href)).length,
           hidden: /[\\u202e\\u200b]/.test(document.body.innerText) })`,
      )
      expect({ path, ...seen }).toEqual({ path, images: 0, scripts: 1, links: 0, hidden: false } as never)
    }
    // The last room's key asks in a dialog, which names it.
    await page.click('[data-action="revoke"]')
    const dialog = page.locator('dialog[open]')
    expect(await dialog.textContent()).toContain('Revoke “U+202E<b>key</b>”?')
    expect([await dialog.getAttribute('aria-label'), await dialog.textContent()].join()).not.toContain('\u202e')
    expect(faults).toEqual([])
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
    const file = await fetch(`${shared.server.url}${path}`, {
      headers: { 'accept-encoding': 'gzip' },
      decompress: false,
    } as RequestInit)
    expect([file.status, file.headers.get('cache-control')]).toEqual([200, 'public, max-age=31536000, immutable'])
    bytes += (await file.arrayBuffer()).byteLength
  }
  expect(bytes).toBeLessThan(80 * 1000)
  expect((await fetch(at('/assets/none.js'))).status).toBe(404)
})
