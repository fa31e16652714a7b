/** A real browser, which asks nobody but the server under test. */

import { type Browser, type BrowserContext, chromium as launcher, type Page } from 'playwright-core'
import { chromium } from './needs.ts'

/** Of the browser: whatever it asks of its maker would be refused or late. */
const quiet = [
  ...['--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking'],
  ...['--disable-component-update', '--disable-sync', '--no-sandbox', '--disable-dev-shm-usage'],
]

interface More {
  readonly args?: readonly string[]
  /** Beside the variables of this process. */
  readonly env?: Readonly<Record<string, string>>
}

export const openBrowser = ({ args = [], env = {} }: More = {}): Promise<Browser> =>
  launcher.launch({ executablePath: chromium, args: [...quiet, ...args], env: { ...process.env, ...env } })

/** Far more than a busy machine needs, and less than a test may take. */
const patienceMs = 240_000

interface Look {
  readonly width?: number
  readonly scheme?: 'light' | 'dark'
  /** Of a phone or tablet: it is touched. */
  readonly isTouched?: boolean
}

/** A page of its own session, and everything that it should not do. */
export async function openPage(
  browser: Browser,
  url: string,
  { width = 1280, scheme = 'light', isTouched = false }: Look = {},
) {
  const context: BrowserContext = await browser.newContext({
    viewport: { width, height: 900 },
    colorScheme: scheme,
    timezoneId: 'UTC',
    ...(isTouched && { hasTouch: true, isMobile: true }),
  })
  context.setDefaultTimeout(patienceMs)
  const page: Page = await context.newPage()
  const faults: string[] = []
  page.on('pageerror', ({ message }) => void faults.push(message))
  page.on('console', (message) => {
    // An answer that is no success is shown by the page; the browser notes each.
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource')) faults.push(message.text())
  })
  page.on('request', (request) => {
    if (!request.url().startsWith(url)) faults.push(`asks ${request.url()}`)
  })
  return { context, page, faults }
}

/** Waits until a room has been read. */
export async function room(page: Page, name: string, state?: string): Promise<void> {
  const isState = state === undefined ? ':not([data-state="loading"])' : `[data-state="${state}"]`
  await page.waitForSelector(`[data-room="${name}"]${isState}`)
}

/** Signs in at an address of the console, and waits for the room there. */
export async function signInAt(page: Page, address: string, key: string): Promise<void> {
  await page.goto(address)
  await room(page, 'sign-in')
  await page.fill('[data-field="key"]', key)
  await page.click('[data-action="sign-in"]')
  await page.waitForSelector('[data-action="sign-out"]')
}
