/**
 * The console: its first view, a list of 100,000 connections, and what open consoles cost everybody else.
 *
 *   bun test/bench/console.ts [ROUNDS] [CONNECTIONS]     (5 and 100,000)
 */

import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import { openBrowser, openPage, room } from '../support/browser.ts'
import { type Server, sendTo, startServer, type Workplace, withoutRates, workplace } from '../support/executable.ts'
import { isHere } from '../support/needs.ts'
import { cookieIn } from '../support/pages.ts'
import { connection, perFile, server } from './data.ts'
import type { Report } from './gateway.ts'
import { cpuSeconds, get, median, serve } from './measure.ts'

const views = 7
const connectionsListed = 100_000
/** Of the servers that are not asked for long lists. */
const connectionsOfOthers = 1000
const idleConsoles = 20
/** In each of two turns with consoles, and in each of two without. */
const idleSeconds = 10
const liveConsoles = 50
const callsPerSecond = 20
const reads = 3000
/** An even pace: a closed loop would send few of its reads into the short bursts of events. */
const readsPerSecond = 500

const keyOf = (user: number) => `bench-key-of-user-${user}-with-enough-characters`
const authorization = { Authorization: `Bearer ${keyOf(0)}` }

/** A server of one organization whose owners all see the connections of its namespace, and the calls of each other. */
async function startCompany(place: Workplace, connections: number): Promise<Server> {
  const folder = join(place.folder, 'fixtures')
  mkdirSync(folder)
  const write = (name: string, document: object) => writeFileSync(join(folder, name), JSON.stringify(document))
  const users = Array.from({ length: liveConsoles }, (_, user) => `user-${user}`)
  const members = users.map((userId) => ({ userId, role: 'owner' }))
  write('company.json', {
    organizations: [{ organizationId: 'org_bench', name: 'Bench', members }],
    namespaces: [{ namespace: 'bench', organizationId: 'org_bench' }],
    apiKeys: users.map((userId, user) => ({ userId, key: keyOf(user) })),
    servers: [server()],
  })
  const mocked = (number: number) => ({ ...connection(number), server: 'bench/reports', mock: { enabled: true } })
  for (let from = 0; from < connections; from += perFile) {
    const length = Math.min(perFile, connections - from)
    write(`connections-${from}.json`, { connections: Array.from({ length }, (_, index) => mocked(from + index)) })
  }
  return startServer(place, ['--fixtures', folder, ...withoutRates])
}

/** The cookie of a new session of a user. */
async function signIn(ours: Server, user: number): Promise<string> {
  const headers = { 'content-type': 'application/json', origin: ours.url }
  const body = JSON.stringify({ key: keyOf(user) })
  const response = await sendTo(ours)('/console/session', { method: 'POST', headers, body })
  if (response.status !== 200) throw new Error(await response.text())
  return cookieIn(response)
}

export async function consoles(report: Report, rounds: number, connections = connectionsListed): Promise<void> {
  if (isHere('Chromium')) {
    const browser = await openBrowser()
    try {
      await firstView(report, browser)
      await longList(report, browser, connections)
    } finally {
      await browser.close()
    }
  } else report('The console in a browser: its first view, and a long list', 'skipped, because Chromium is not here')
  await idle(report)
  await live(report, rounds)
}

/** A page with a session, of a browser that has nothing in its cache. */
async function openConsole(browser: Browser, ours: Server, cookie: string) {
  const opened = await openPage(browser, ours.url)
  const [name = '', value = ''] = cookie.split('=')
  await opened.context.addCookies([{ name, value, url: ours.url }])
  return opened
}

const paint = `performance.getEntriesByName('first-contentful-paint')[0]?.startTime`
const noteWhenReady = `new MutationObserver(() => {
  if (document.querySelector('[data-room="overview"][data-state="ready"]')) window.readyAt ??= performance.now()
}).observe(document, { subtree: true, childList: true, attributes: true })`
/** Compressed, as they came. A file that was asked for later is not part of the first view. */
const bytesUntilReady = `performance.getEntriesByType('resource')
  .filter((one) => one.startTime < window.readyAt && one.name.includes('/console/assets/'))
  .concat(performance.getEntriesByType('navigation'))
  .reduce((sum, one) => sum + one.encodedBodySize, 0)`

async function firstView(report: Report, browser: Browser): Promise<void> {
  using place = workplace()
  await using ours = await startCompany(place, connectionsOfOthers)
  using plain = Bun.serve({
    ...{ port: 0, hostname: '127.0.0.1', development: false },
    fetch: () =>
      new Response('<!doctype html><title>Plain</title><p>Words.', { headers: { 'content-type': 'text/html' } }),
  })
  const cookie = await signIn(ours, 0)
  const viewPlain = async () => {
    const { context, page } = await openPage(browser, plain.url.href)
    await page.goto(plain.url.href)
    await page.waitForFunction(paint)
    const painted = await page.evaluate<number>(paint)
    await context.close()
    return painted
  }
  const viewConsole = async () => {
    const { context, page, faults } = await openConsole(browser, ours, cookie)
    await page.addInitScript(noteWhenReady)
    await page.goto(`${ours.url}/console`)
    await room(page, 'overview', 'ready')
    // A file is counted when it has come.
    await page.waitForTimeout(300)
    const painted = await page.evaluate<number>(paint)
    const ready = await page.evaluate<number>('window.readyAt')
    const bytes = await page.evaluate<number>(bytesUntilReady)
    if (faults.length > 0) throw new Error(faults.join())
    await context.close()
    return { painted, ready, bytes }
  }
  const plainPaints: number[] = []
  const seen: Awaited<ReturnType<typeof viewConsole>>[] = []
  for (let view = 0; view <= views; view += 1) {
    const painted = await viewPlain()
    const one = await viewConsole()
    // The first one warms up.
    if (view === 0) continue
    plainPaints.push(painted)
    seen.push(one)
  }
  const bytes = Math.max(...seen.map((one) => one.bytes))
  report(
    'Console: files until the overview is ready, compressed',
    `${(bytes / 1000).toFixed(1)} kB`,
    '80 kB',
    bytes <= 80_000,
  )
  const painted = median(seen.map((one) => one.painted))
  const plainPainted = median(plainPaints).toFixed(0)
  const ready = median(seen.map((one) => one.ready)).toFixed(0)
  report(
    'Console: first contentful paint with a session',
    `${painted.toFixed(0)} ms (a static page ${plainPainted} ms; overview ready after ${ready} ms)`,
    '200 ms',
    painted <= 200,
  )
}

/** Scrolls to the end of the list, page by page, as soon as each page has come; or presses for it where one presses. */
const scrollToEnd = `(async () => {
  const patienceMs = 60_000
  const frame = () => new Promise((resolve) => requestAnimationFrame(resolve))
  let most = 0
  const look = () => {
    const list = document.querySelector('[data-part="rows"]')
    const rows = list?.querySelectorAll('[data-id]') ?? []
    const last = rows[rows.length - 1]?.dataset.id
    most = Math.max(most, rows.length)
    return { isEnd: list?.dataset.end === 'true', last, height: document.body.scrollHeight }
  }
  for (;;) {
    const before = look()
    if (before.isEnd) return { most, last: before.last }
    scrollTo(0, document.body.scrollHeight)
    document.querySelector('[data-action="more"]')?.click()
    const until = performance.now() + patienceMs
    for (let now = look(); now.last === before.last && now.height === before.height && !now.isEnd; now = look()) {
      if (performance.now() > until) throw new Error('no row came after ' + before.last)
      await frame()
    }
  }
})()`

async function longList(report: Report, browser: Browser, connections: number): Promise<void> {
  using place = workplace()
  await using ours = await startCompany(place, connections)
  const { context, page, faults } = await openConsole(browser, ours, await signIn(ours, 0))
  const tools = await context.newCDPSession(page)
  await tools.send('Performance.enable')
  const size = async () => {
    await tools.send('HeapProfiler.collectGarbage')
    const { metrics } = await tools.send('Performance.getMetrics')
    const of = (wanted: string) => metrics.find(({ name }) => name === wanted)?.value ?? Number.NaN
    const megabytes = of('JSHeapUsedSize') / 2 ** 20
    return `${megabytes.toFixed(1)} MB and ${of('Nodes').toLocaleString('en')} nodes`
  }
  await page.goto(`${ours.url}/console/connections?namespace=bench`)
  await room(page, 'connections', 'ready')
  await page.waitForSelector('[data-part="rows"] [data-id]')
  const first = await size()
  const started = performance.now()
  const { most, last } = await page.evaluate<{ most: number; last: string }>(scrollToEnd)
  const seconds = (performance.now() - started) / 1000
  if (last !== `bench/${connection(connections - 1).connectionId}`) throw new Error(`the list ends with ${last}`)
  if (faults.length > 0) throw new Error(faults.join())
  const whole = await size()
  await context.close()
  const what = `Console: ${connections.toLocaleString('en')} connections scrolled to the end`
  report(`${what}, rows in the document at the most`, most.toLocaleString('en'), '200', most <= 200)
  report(`${what}, memory of scripts`, `${whole} after ${seconds.toFixed(0)} s (${first} at its beginning)`)
}

interface Listening {
  /** Calls that it has heard of. */
  readonly heard: () => number
  readonly end: () => void
}

const callEvent = '\nevent: call\n'

/** The stream of a console, without its browser. Resolves when it has begun. */
async function listen(port: number, cookie: string): Promise<Listening> {
  const begun = Promise.withResolvers<void>()
  const headers = { Cookie: cookie, 'Sec-Fetch-Site': 'same-origin', Accept: 'text/event-stream' }
  let heard = 0
  let rest = ''
  const socket = await Bun.connect({
    hostname: '127.0.0.1',
    port,
    socket: {
      open: (self) => void self.write(get(port, '/events?types=call,connection,client', headers)),
      data(_, chunk) {
        if (rest === '' && !chunk.toString('latin1', 0, 12).endsWith('200')) begun.reject(new Error(chunk.toString()))
        begun.resolve()
        const text = rest + chunk.toString('latin1')
        heard += text.split(callEvent).length - 1
        // The name of an event may come in two parts.
        rest = text.slice(1 - callEvent.length)
      },
    },
  })
  await begun.promise
  return { heard: () => heard, end: () => socket.end() }
}

const signInAll = (ours: Server, count: number) =>
  Promise.all(Array.from({ length: count }, (_, user) => signIn(ours, user)))

async function idle(report: Report): Promise<void> {
  using place = workplace()
  await using ours = await startCompany(place, connectionsOfOthers)
  const port = Number(new URL(ours.url).port)
  const cookies = await signInAll(ours, idleConsoles)
  /** Percent of a core. */
  const share = async () => {
    // Whatever was opened or closed just before has an end.
    await Bun.sleep(2000)
    const before = cpuSeconds(ours.pid)
    await Bun.sleep(idleSeconds * 1000)
    return (100 * (cpuSeconds(ours.pid) - before)) / idleSeconds
  }
  let without = 0
  let beside = 0
  for (let turn = 0; turn < 2; turn += 1) {
    without += (await share()) / 2
    const streams = await Promise.all(cookies.map((cookie) => listen(port, cookie)))
    beside += (await share()) / 2
    for (const stream of streams) stream.end()
  }
  const more = beside - without
  report(
    `Processor time of a server with ${idleConsoles} idle consoles, beyond one with none`,
    `${more.toFixed(2)} % of a core (${beside.toFixed(2)} % and ${without.toFixed(2)} %)`,
    '1 %',
    more < 1,
  )
}

/** Calls a tool at an even pace, until the function that it returns is called, which resolves with their number. */
function callAlways(ours: Server, id: string): () => Promise<number> {
  const headers = { ...authorization, 'content-type': 'application/json' }
  const body = JSON.stringify({ from: '2026-03-01', to: '2026-03-02' })
  const statuses: Promise<number>[] = []
  const call = async () => {
    const response = await sendTo(ours)(`/connect/bench/${id}/.tools/run_report_0`, { method: 'POST', headers, body })
    await response.text()
    return response.status
  }
  const timer = setInterval(() => statuses.push(call()), 1000 / callsPerSecond)
  return async () => {
    clearInterval(timer)
    const failed = (await Promise.all(statuses)).filter((status) => status !== 200)
    if (failed.length > 0) throw new Error(`calls were answered with ${failed.join()}`)
    return statuses.length
  }
}

async function live(report: Report, rounds: number): Promise<void> {
  using place = workplace()
  await using ours = await startCompany(place, connectionsOfOthers)
  const port = Number(new URL(ours.url).port)
  const cookies = await signInAll(ours, liveConsoles)
  const { connectionId: id } = connection(0)
  const requests = [`/connect/bench/${id}`, '/connect/bench'].map((path) => get(port, path, authorization))
  const load = { port, connections: 1, count: reads, perSecond: readsPerSecond, requests }
  const measure = async () => {
    const stop = callAlways(ours, id)
    const { p99 } = await serve(ours.pid, load)
    return { p99, calls: await stop() }
  }
  const figures: { without: number; beside: number }[] = []
  for (let round = 0; round <= rounds; round += 1) {
    const without = await measure()
    const streams = await Promise.all(cookies.map((cookie) => listen(port, cookie)))
    const beside = await measure()
    // An event comes after the answer to its call.
    await Bun.sleep(500)
    const heard = streams.reduce((sum, stream) => sum + stream.heard(), 0)
    for (const stream of streams) stream.end()
    if (heard < beside.calls * liveConsoles) throw new Error(`${heard} events of ${beside.calls} calls were heard`)
    // The first round warms up.
    if (round > 0) figures.push({ without: without.p99, beside: beside.p99 })
  }
  const ratio = median(figures.map(({ without, beside }) => beside / without))
  const of = (name: 'without' | 'beside') => median(figures.map((one) => one[name])).toFixed(2)
  report(
    `Reads beside ${callsPerSecond} calls a second, p99 while ${liveConsoles} consoles hear of them, to none`,
    `${ratio.toFixed(2)} × (${of('beside')} ms to ${of('without')} ms)`,
    '1.5 ×',
    ratio <= 1.5,
  )
}

if (import.meta.main) {
  await consoles(
    (what, figure, goal = '', held) => console.log(`${what}: ${figure} (goal: ${goal}) ${held}`),
    Number(process.argv[2] ?? 5),
    Number(process.argv[3] ?? connectionsListed),
  )
  process.exit(0)
}
