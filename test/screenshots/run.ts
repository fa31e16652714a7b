/**
 * `make screenshots`: takes the pictures of the console for `docs/images`, light and dark. It starts the executable on
 * the sample, makes an hour of calls, and drives Chromium through the rooms.
 *
 * Two runs give the same bytes, so that a picture changes in the repository only where the console has changed. The
 * clock of the server stands still, by libfaketime, and so does that of the page: a time is as long ago in each run. The
 * durations of calls are replaced on their way to the page. Letters are those of Inter, whatever else the machine has.
 */

import { readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { openBrowser, openPage, room, signInAt } from '../support/browser.ts'
import { startServer, unlimited, type Workplace, workplace } from '../support/executable.ts'
import { faketime, isHere } from '../support/needs.ts'
import { random } from '../support/random.ts'
import { sampleKeys } from '../support/sample.ts'
import { makeCalls, pictured, seed, stoppedClock } from './hour.ts'
import { fileOf, type Pictured, rooms, type Scheme, schemes, type Width } from './rooms.ts'
import { hashFile, hashOfShown, pictures } from './shown.ts'

/** Pixels. Past it: the picture has the upper part of its room. */
const heightMax: Readonly<Record<Width, number>> = { 1280: 900, 390: 844 }
/** Milliseconds in which nothing may have changed: charts, health and findings come after their room is ready. */
const quietMs = 700

/** Puts durations that are the same in each run in the place of those that this machine took. */
function withSteadyDurations(body: string): string {
  const chance = random(seed)
  const duration = (from: number, below: number) => from + chance.int((below - from) * 10) / 10
  return body
    .replaceAll(/"ms":[\d.]+/g, () => `"ms":${duration(2, 9)}`)
    .replaceAll(
      /"p50":[\d.]+,"p95":[\d.]+,"p99":[\d.]+/g,
      () => `"p50":${duration(4, 6)},"p95":${duration(8, 12)},"p99":${duration(14, 24)}`,
    )
}

/** The settings of a desktop whose font is Inter. Without them, each machine has letters of another width. */
function fontSettings({ folder }: Workplace): string {
  const file = join(folder, 'fonts.conf')
  const rules = ['system-ui', 'sans-serif'].map(
    (family) =>
      `<match><test name="family"><string>${family}</string></test>
       <edit name="family" mode="prepend" binding="strong"><string>Inter</string></edit></match>`,
  )
  writeFileSync(
    file,
    `<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd">
     <fontconfig><include>/etc/fonts/fonts.conf</include>${rules.join('')}</fontconfig>`,
  )
  return file
}

/** The bytes of the page, once they stay the same. */
async function stillPicture(page: Page): Promise<Buffer> {
  let before = await page.screenshot({ animations: 'disabled' })
  for (;;) {
    await page.waitForTimeout(quietMs)
    const now = await page.screenshot({ animations: 'disabled' })
    if (now.equals(before)) return now
    before = now
  }
}

/** Goes into a room and does what its picture needs. */
async function enter(page: Page, url: string, { path, user, room: name, prepare }: Pictured): Promise<void> {
  await page.clock.setFixedTime(pictured)
  await page.route(/\/calls(?:\/series)?\?/, async (route) => {
    // The browser adds this header late, and the session counts only with it.
    const headers = { ...(await route.request().allHeaders()), 'sec-fetch-site': 'same-origin' }
    const response = await route.fetch({ headers })
    await route.fulfill({ response, body: withSteadyDurations(await response.text()) })
  })
  const address = `${url}/console${path}`
  if (user === undefined) await page.goto(address)
  else await signInAt(page, address, sampleKeys[user])
  await room(page, name, 'ready')
  await prepare?.(page)
  // The field that was typed into last is no more important than the rest.
  await page.evaluate('document.activeElement?.blur()')
  await page.mouse.move(0, 0)
  await page.evaluate(withUsualPort)
  await stillPicture(page)
}

/** The port of the server is another one each time. */
const withUsualPort = `{
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  while (texts.nextNode())
    texts.currentNode.data = texts.currentNode.data.replaceAll(location.host, '127.0.0.1:8787')
}`

/** Makes the window as high as what it shows. Resolves with its height. */
async function fitWindow(page: Page, width: Width): Promise<number> {
  // A page is at least as high as its window, so the window is made low before the page is measured.
  await page.setViewportSize({ width, height: 320 })
  const whole = await page.evaluate<number>('document.documentElement.scrollHeight')
  const height = Math.min(whole, heightMax[width])
  await page.setViewportSize({ width, height })
  await page.evaluate('scrollTo(0, 0)')
  return height
}

async function take(browser: Browser, url: string, one: Pictured, width: Width, scheme: Scheme): Promise<void> {
  const { context, page, faults } = await openPage(browser, url, { width, scheme })
  await enter(page, url, one)
  const height = await fitWindow(page, width)
  const picture = await stillPicture(page)
  await context.close()
  if (faults.length > 0) throw new Error(`${one.room}: ${faults.join(', ')}`)
  // Without loss, and yet smaller than a palette's PNG.
  const bytes = await new Bun.Image(picture).webp({ lossless: true }).bytes()
  const file = fileOf(one, width, scheme)
  writeFileSync(join(pictures, file), bytes)
  console.log(`${file}  ${width} × ${height}  ${bytes.length} B`)
}

function missing(): string[] {
  const hasInter = Bun.spawnSync(['sh', '-c', 'fc-list :family=Inter | grep -q .']).exitCode === 0
  return [
    ...(isHere('Chromium') ? [] : ['chromium-headless-shell']),
    ...(isHere('libfaketime') ? [] : ['libfaketime']),
    ...(hasInter ? [] : ['fonts-inter', 'fontconfig']),
  ]
}

async function main(): Promise<number> {
  const packages = missing()
  if (packages.length > 0) {
    console.error(`The pictures need what is not here: apt-get install ${packages.join(' ')}`)
    return 1
  }
  using place = workplace()
  const clock = stoppedClock(place)
  clock.set(pictured)
  await using server = await startServer(place, unlimited, {
    env: {
      TZ: 'UTC',
      LD_PRELOAD: faketime,
      FAKETIME_TIMESTAMP_FILE: clock.file,
      FAKETIME_NO_CACHE: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    },
  })
  await makeCalls(server.url, clock)
  const browser = await openBrowser({
    // Else a part that is painted again differs by a shade, depending on when it was.
    args: ['--disable-partial-raster'],
    env: { FONTCONFIG_FILE: fontSettings(place) },
  })
  try {
    // Those of rooms that are pictured no longer, too.
    for (const file of readdirSync(pictures)) if (file.startsWith('console-')) rmSync(join(pictures, file))
    for (const one of rooms)
      for (const width of one.widths) for (const scheme of schemes) await take(browser, server.url, one, width, scheme)
  } finally {
    await browser.close()
  }
  writeFileSync(hashFile, `${hashOfShown()}\n`)
  return 0
}

process.exitCode = await main()
