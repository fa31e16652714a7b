/** Long lists and charts of the console, in a real browser (contract, 23). */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { openBrowser, openPage, room, signInAt } from '../support/browser.ts'
import { sendTo, startServer, workplace } from '../support/executable.ts'
import { isHere } from '../support/needs.ts'

const count = 2500
const key = 'a-key-of-at-least-32-characters-0'
const fixtures = {
  namespaces: [{ namespace: 'many', userId: 'u' }],
  apiKeys: [{ userId: 'u', key }],
  servers: [
    {
      ...{ qualifiedName: 'many/echo', displayName: 'Echo', description: 'Says it again', remote: true },
      connections: [{ type: 'http', deploymentUrl: 'https://echo.example/mcp', configSchema: {} }],
      tools: [{ name: 'echo', inputSchema: { type: 'object' } }],
    },
  ],
  connections: Array.from({ length: count }, (_, number) => ({
    ...{ namespace: 'many', connectionId: `c${String(number).padStart(4, '0')}`, server: 'many/echo' },
    ...{ mcpUrl: 'https://echo.example/mcp', mock: { enabled: true } },
  })),
}

let browser: Browser
beforeAll(async () => {
  if (isHere('Chromium')) browser = await openBrowser()
})
afterAll(() => browser?.close())

/** Ids of the rows in the document. */
const ids = (page: Page) =>
  page.$$eval('[data-part="rows"] [data-id]', (rows) => rows.map((row) => row.getAttribute('data-id') ?? ''))

/** Scrolls until a row that fits is there. */
async function scrollTo(page: Page, y: string, id: string): Promise<void> {
  while (!(await ids(page)).includes(id)) {
    await page.evaluate(`scrollTo(0, ${y})`)
    await page.evaluate('new Promise((seen) => requestAnimationFrame(() => requestAnimationFrame(seen)))')
    expect((await ids(page)).length).toBeLessThanOrEqual(200)
  }
}

describe.skipIf(!isHere('Chromium'))('lists and charts', () => {
  test('a list is scrolled to its end and back, and found again where it was left (needs Chromium)', async () => {
    using place = workplace()
    mkdirSync(join(place.folder, 'fixtures'))
    writeFileSync(join(place.folder, 'fixtures/many.json'), JSON.stringify(fixtures))
    await using server = await startServer(place, ['--fixtures', join(place.folder, 'fixtures')])
    const { context, page, faults } = await openPage(browser, server.url)
    await signInAt(page, `${server.url}/console/connections?namespace=many`, key)
    await room(page, 'connections', 'ready')
    const rows = page.locator('[data-part="rows"]')
    expect(await rows.getAttribute('data-end')).toBe('false')
    await scrollTo(page, 'document.body.scrollHeight', `many/c${count - 1}`)
    await page.waitForSelector('[data-part="rows"][data-end="true"]')
    // These pages were let go meanwhile.
    await scrollTo(page, '20_000', 'many/c0545')
    const before = await page.evaluate<number>('scrollY')
    await page.click('[data-id="many/c0545"] a')
    await room(page, 'connection', 'ready')
    expect(await page.evaluate<number>('scrollY')).toBe(0)
    await page.goBack()
    await page.waitForSelector('[data-id="many/c0545"]')
    expect(await page.evaluate<number>('scrollY')).toBe(before)
    await scrollTo(page, '0', 'many/c0000')
    expect(faults).toEqual([])
    await context.close()
  })

  test('a chart has the numbers of the interface as a table, and calls are exported (needs Chromium)', async () => {
    using place = workplace()
    mkdirSync(join(place.folder, 'fixtures'))
    writeFileSync(join(place.folder, 'fixtures/many.json'), JSON.stringify(fixtures))
    await using server = await startServer(place, ['--fixtures', join(place.folder, 'fixtures')])
    const { context, page, faults } = await openPage(browser, server.url)
    await signInAt(page, `${server.url}/console/calls`, key)
    await room(page, 'calls', 'empty')
    await page.waitForSelector('[data-part="chart"] :text("No call in the last hour")')
    const authorization = `Bearer ${key}`
    const headers = { authorization, 'content-type': 'application/json' }
    const call = () => sendTo(server)('/connect/many/c0001/.tools/echo', { method: 'POST', headers, body: '{}' })
    for (let made = 0; made < 3; made += 1) expect((await call()).status).toBe(200)
    await page.reload()
    await page.waitForSelector('[data-part="chart"] canvas')
    const answer = await sendTo(server)('/calls/series?step=60', { headers })
    const { steps } = (await answer.json()) as { steps: { ok: number }[] }
    const shown = await page.$$eval('[data-part="chart-table"] tbody', ([table]) =>
      [...(table?.querySelectorAll('tr') ?? [])].map((row) => Number(row.children[1]?.textContent)),
    )
    expect(shown.reduce((sum, one) => sum + one)).toBe(3)
    const saved = page.waitForEvent('download')
    await page.click('[data-action="export"]')
    const lines = readFileSync(await (await saved).path(), 'utf8')
      .trim()
      .split('\n')
    expect(lines.map((line) => JSON.parse(line).tool)).toEqual(['echo', 'echo', 'echo'])
    expect(steps.reduce((sum, { ok }) => sum + ok, 0)).toBe(3)
    expect(faults).toEqual([])
    await context.close()
  })
})
