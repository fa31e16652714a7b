/** The rooms of the pictures, and what somebody does in each before it is taken. */

import type { Page } from 'playwright-core'
import type { SampleUser } from '../support/sample.ts'

/** Pixels of a desk's screen, and of a telephone's. */
export type Width = 1280 | 390

export interface Pictured {
  /** As `data-room` has it, and as the file is named. */
  readonly room: string
  /** Below `/console`. */
  readonly path: string
  /** Nobody has signed in without one. */
  readonly user?: SampleUser
  readonly widths: readonly Width[]
  readonly prepare?: (page: Page) => Promise<void>
}

const policy = `[
  {
    "namespaces": "northwind",
    "operations": "execute",
    "rpcReqMatch": { "params.name": "get_" },
    "ttl": "30m"
  }
]`

/** In the order in which they are visited: a call that a room makes is seen in those after it. */
export const rooms: readonly Pictured[] = [
  { room: 'overview', path: '', user: 'ada', widths: [1280, 390] },
  // An operator sees the calls of everybody.
  { room: 'calls', path: '/calls', user: 'operator', widths: [1280, 390] },
  // Priya's company has few connections, in all states, and names that any font has.
  { room: 'connections', path: '/connections?namespace=lumen', user: 'priya', widths: [1280] },
  {
    room: 'tokens',
    path: '/tokens',
    user: 'ada',
    widths: [1280],
    async prepare(page) {
      await page.fill('[data-field="policy"]', policy)
      await page.waitForSelector('[data-part="findings"] li:has-text("unanchored-pattern")')
      await page.click('details[data-part="tools"] > summary')
    },
  },
  {
    room: 'tool',
    path: '/connections/northwind/weather-ada/tools/get_forecast',
    user: 'ada',
    widths: [1280],
    async prepare(page) {
      await page.fill('[data-field="/location"]', 'Zermatt')
      await page.fill('[data-field="/days"]', '2')
      await page.click('[data-action="call"]')
      await page.waitForSelector('[data-part="result"]')
      await setDuration(page, '[data-part="result"]', '152 ms')
    },
  },
  { room: 'sign-in', path: '', widths: [1280] },
]

export const schemes = ['light', 'dark'] as const
export type Scheme = (typeof schemes)[number]

export const fileOf = ({ room }: Pictured, width: Width, scheme: Scheme) => `console-${room}-${width}-${scheme}.webp`

/** Of all pictures. */
export const files = rooms.flatMap((one) =>
  one.widths.flatMap((width) => schemes.map((scheme) => fileOf(one, width, scheme))),
)

/** Writes a duration over the one that the page has measured: no two runs take equally long. */
async function setDuration(page: Page, within: string, duration: string): Promise<void> {
  await page.evaluate(`
    for (const element of document.querySelectorAll(${JSON.stringify(`${within} *`)}))
      if (element.childElementCount === 0)
        element.textContent = element.textContent.replace(/\\b[\\d.]+ ms\\b/, ${JSON.stringify(duration)})`)
}
