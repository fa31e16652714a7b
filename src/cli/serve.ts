/** `postern serve`: opens the data folder, loads fixtures, listens, and stops in good order. */

import { closeSync, openSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import { setTimeout as wait } from 'node:timers/promises'
import { isatty } from 'node:tty'
import { createApp } from '../app.ts'
import { apiKeyDigest, createApiKey } from '../auth/api-key.ts'
import { CommandError } from '../errors.ts'
import { createSigners } from '../features/tokens/signers.ts'
import { clientAddress } from '../http/client-address.ts'
import { asPlatformError, errorResponse } from '../http/error-response.ts'
import { createGuard, isLoopback } from '../http/guard.ts'
import { originalRequest, rawPathRoutes } from '../http/raw-path.ts'
import { createShares } from '../http/shares.ts'
import { idleTimeoutSeconds, pendingResponseBytesMax, shutdownTimeoutMs } from '../limits.ts'
import { type DataFolder, lockForServing, openDataFolder } from '../maintenance/data-folder.ts'
import { isLoaded, loadFixtures } from '../maintenance/seed/load.ts'
import { type Fixtures, readFixtures } from '../maintenance/seed/read.ts'
import { acceptsSampleKey, hasSampleKey } from '../maintenance/seed/sample-keys.ts'
import { digestOf, findFixtureFiles, type SourceFile, sourceFile } from '../maintenance/seed/source-files.ts'
import { createSpool } from '../maintenance/seed/spool.ts'
import { openAuditLog } from '../ops/audit-log.ts'
import { createLog, type Log } from '../ops/log.ts'
import { removeAhead } from '../storage/ahead.ts'
import { apiKeyDigestKey, baseUrlKey, startedKey } from '../storage/keys.ts'
import { asBuffer, type Store } from '../storage/store.ts'
import { createAddresses } from '../upstream/addresses.ts'
import { chooseClient } from '../upstream/clients.ts'
import { createUpstream } from '../upstream/upstream.ts'
import { version } from '../version.ts'
import { fixtureProblemsText } from './check.ts'
import { type ServeConfig, urlOf } from './config.ts'
import { greeting } from './greeting.ts'
import { serveMetrics } from './metrics-listener.ts'
import { createProgress } from './progress.ts'
import type { Terminal } from './terminal.ts'

export interface Running {
  readonly url: string
  readonly folder: DataFolder
  readonly log: Log
  /** The operator key that this start made, if it did. */
  readonly operatorKey: string | undefined
  /**
   * Loads these fixtures now and gives them back. Throws CommandError when they have problems; then nothing has
   * changed.
   */
  load(sources: readonly SourceFile[]): Promise<Fixtures | 'unchanged'>
  /**
   * Opens the audit log anew, and loads the folders again where their files have changed. Problems are logged, and what
   * was loaded stays.
   */
  reload(folders: readonly string[]): Promise<void>
  /** Finishes the requests in flight and closes the store. */
  stop(): Promise<void>
}

/** Starts a server that answers; throws CommandError with a line that says what to do. */
export async function start(config: ServeConfig, dataPath: string, terminal: Terminal): Promise<Running> {
  const log = createLog({ write: terminal.stderr, now: () => new Date() })
  using cleanup = new DisposableStack()
  cleanup.use(lockForServing(dataPath))
  const folder = await openDataFolder(dataPath, (from, to, upgrade) => {
    if (upgrade()) log.info('the store is upgraded', { from, to })
  })
  const { store, secrets } = folder
  const server = listen(config)
  cleanup.defer(() => void server.stop(true))
  const isPublic = !isLoopback(config.host)

  const load = async (sources: readonly SourceFile[]) => {
    const digest = digestOf(sources)
    if (await isLoaded(store, digest)) return 'unchanged' as const
    const progress = createProgress(log, process.stderr)
    const reading = (done: number) => {
      progress.step('reading fixtures', done)
      if (done % giveBackEvery === 0) giveBack()
    }
    using spool = createSpool(dataPath)
    const { fixtures, problems } = readFixtures(sources, reading, spool)
    if (problems.length > 0) throw new CommandError(fixtureProblemsText(problems))
    const isLarge = fixtures.connections.length >= giveBackEvery
    if (isLarge) giveBack()
    if (isPublic && !config.areSampleKeysAllowed && hasSampleKey(fixtures.apiKeys)) throw sampleKeysRefused(config)
    const onProgress = (done: number, total: number) => progress.step('loading fixtures', done, total)
    const loaded = await loadFixtures(store, fixtures, digest, {
      pepper: secrets.apiKeyPepper,
      now: new Date(),
      log,
      onProgress,
    })
    progress.end()
    log.info('fixtures loaded', { ...loaded })
    // Later: whoever called has the fixtures still.
    if (isLarge) setTimeout(giveBack, giveBackAfterMs).unref()
    return fixtures
  }
  // What a load that was cut off has left, and no other is under way: the folder is ours.
  await removeAhead(store)
  if (config.fixtures.length > 0) await load(findFixtureFiles(config.fixtures).map(sourceFile))
  // Those of an earlier load too.
  if (isPublic && (await acceptsSampleKey(store, secrets.apiKeyPepper))) {
    if (!config.areSampleKeysAllowed) throw sampleKeysRefused(config)
    log.warn('the keys of the sample fixtures, which everybody has, are accepted', { host: config.host })
  }

  const url = config.baseUrl ?? urlOf(config.host, server.port ?? 0)
  const localAddresses = Object.values(networkInterfaces()).flatMap((list) => list?.map(({ address }) => address) ?? [])
  const guard = createGuard({ host: config.host, baseUrl: url, corsOrigins: config.corsOrigins, localAddresses })
  const audit = openAuditLog(dataPath, {
    now: () => new Date(),
    onFailure: (error) => log.error('the audit log cannot be written', { error: String(error) }),
  })
  cleanup.defer(() => audit.close())
  // Nobody asked for metrics: then nothing is counted, and the library that counts is not loaded.
  const metrics =
    config.metrics === undefined
      ? undefined
      : await serveMetrics(
          config.metrics,
          createGuard({ host: config.metrics.host, baseUrl: url, corsOrigins: [], localAddresses }),
          store,
          dataPath,
          () => app.pageCache(),
        )
  if (metrics !== undefined) {
    cleanup.defer(() => metrics.stop())
    log.info('metrics listening', { url: metrics.url })
  }
  const signers = createSigners()
  cleanup.defer(() => signers.close())
  const memory = createShares(pendingResponseBytesMax)
  /** A request that takes its time has none of the runtime's timeout, and gets it back. */
  const disableIdleTimeout = (request: Request) => {
    const arrived = originalRequest(request)
    server.timeout(arrived, 0)
    return () => server.timeout(arrived, idleTimeoutSeconds)
  }
  const machine = new Set(['127.0.0.1', '::1', config.host, ...localAddresses])
  const addresses = createAddresses({
    ...config.upstream,
    isOurs: (address, port, target) =>
      (port === server.port && (machine.has(address) || isLoopback(address))) || isBelow(target, url),
  })
  const open = await chooseClient(config.upstream.client, () =>
    log.warn('this runtime has no HTTP parser that we know, so MCP servers are reached as with --upstream-client node'),
  )
  const app = createApp({
    upstream: createUpstream(addresses, {
      open,
      memory,
      pseudonym: secrets.pseudonym,
      authorities: config.upstream.authorities,
      observe: metrics?.observer.upstreamResponded,
    }),
    upstreamTimeoutMs: config.upstream.timeoutMs,
    memory,
    async wait(milliseconds, request) {
      const onWaited = disableIdleTimeout(request)
      await wait(milliseconds, undefined, { signal: request.signal }).catch(() => {})
      onWaited()
    },
    disableIdleTimeout,
    signers,
    store,
    secrets,
    issuer: url,
    guard,
    audit,
    rates: config.rates,
    quota: config.quota,
    now: Date.now,
    monotonic: () => performance.now(),
    addressOf: (request) =>
      clientAddress(server.requestIP(originalRequest(request))?.address ?? '', request.headers, config.trustedProxies),
    log,
    ...(metrics && { observer: metrics.observer }),
  })
  // Last of all: a start that fails has not made a key that nobody saw.
  const operatorKey = await firstStart(folder, config.operatorKey, log)
  await noteBaseUrl(store, url, log)
  if (config.baseUrl === undefined && wildcards.has(config.host)) {
    log.warn('tokens name an issuer that no client can call: set --base-url', { issuer: url })
  }
  server.reload({ fetch: app.fetch, routes: rawPathRoutes(app.fetch) })

  const reload = async (folders: readonly string[]) => {
    audit.reopen()
    if (folders.length === 0) return
    try {
      const loaded = await load(findFixtureFiles(folders).map(sourceFile))
      if (loaded === 'unchanged') log.info('the fixtures have not changed')
    } catch (error) {
      const { message } = error as Error
      if (error instanceof CommandError) log.warn('fixtures were not reloaded', { problems: message })
      else log.error('fixtures were not reloaded', { error: message })
    }
  }
  /** One after the other: a change comes in several steps, and a signal at any time. */
  let reloading = Promise.resolve()

  const held = cleanup.move()
  return {
    url: urlOf(config.host, server.port ?? 0),
    folder,
    log,
    operatorKey,
    load,
    reload(folders) {
      reloading = reloading.then(() => reload(folders))
      return reloading
    },
    async stop() {
      const timeoutMs = setTimeout(() => void server.stop(true), shutdownTimeoutMs)
      await server.stop()
      clearTimeout(timeoutMs)
      await store.close()
      held.dispose()
    },
  }
}

/** What reading so many connections leaves behind, the runtime would keep for later: some hundred megabytes. */
const giveBackEvery = 100_000
const giveBackAfterMs = 500
const giveBack = () => Bun.gc(true)

/** Is it what clients call us, whatever proxy is in between? Others may be served beside us under the same name. */
function isBelow(target: URL, baseUrl: string): boolean {
  const { origin, pathname } = new URL(baseUrl)
  return target.origin === origin && `${target.pathname}/`.startsWith(pathname.replace(/\/*$/, '/'))
}

function sampleKeysRefused({ host }: ServeConfig): CommandError {
  return new CommandError(
    `whoever reaches ${host} could use the keys of the sample fixtures, which everybody has: load fixtures of your own ` +
      'and revoke those keys (postern keys revoke), or allow them with --allow-sample-keys',
  )
}

/** Bound before anything is loaded, so that a busy port is told at once; answers "not yet" until then. */
function listen({ host, port }: ServeConfig) {
  try {
    return Bun.serve({
      hostname: host,
      port,
      reusePort: false,
      development: false,
      idleTimeout: idleTimeoutSeconds,
      // Bodies are bounded where they are read, with an answer that says so; the runtime's would be empty.
      maxRequestBodySize: Number.MAX_SAFE_INTEGER,
      fetch: () => Response.json({ error: 'unavailable', message: 'The server is starting' }, { status: 503 }),
      // Nothing gets here but by a mistake of ours outside the application: the runtime would answer with its own page.
      error: (thrown) => errorResponse(asPlatformError(thrown)),
    })
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    const busy = code === 'EADDRINUSE'
    const why = code === 'ENOENT' || code === 'EADDRNOTAVAIL' ? 'this machine has no such address' : message
    throw new CommandError(
      busy
        ? `port ${port} on ${host} is taken: stop what uses it, or choose another with --port (0 picks a free one)`
        : `cannot listen on ${host}:${port}: ${why}; choose with --host and --port`,
      1,
      { cause: error },
    )
  }
}

/** The first start of a data folder makes one operator key. Undefined later, and where the environment brought it. */
async function firstStart(
  { store, secrets }: DataFolder,
  operatorKey: string | undefined,
  log: Log,
): Promise<string | undefined> {
  if ((await store.get(startedKey)) !== undefined) {
    if (operatorKey !== undefined)
      log.info('POSTERN_API_KEY is read at the first start only; later keys come from `postern keys create`')
    return undefined
  }
  if (
    operatorKey !== undefined &&
    (await store.get(apiKeyDigestKey(apiKeyDigest(secrets.apiKeyPepper, operatorKey)))) !== undefined
  ) {
    throw new CommandError('POSTERN_API_KEY is also a key of the fixtures: choose another')
  }
  const { key } = await createApiKey(store, secrets.apiKeyPepper, {
    userId: 'operator',
    name: 'first start',
    operator: true,
    now: new Date(),
    ...(operatorKey !== undefined && { key: operatorKey }),
  })
  await store.commit({ puts: [{ key: startedKey, value: Buffer.from(new Date().toISOString()) }] })
  return operatorKey === undefined ? key : undefined
}

const wildcards = new Set(['0.0.0.0', '::'])

/** Keeps what this server is called, and tells where it was called something else: that ends its tokens. */
async function noteBaseUrl(store: Store, url: string, log: Log): Promise<void> {
  const stored = await store.get(baseUrlKey)
  const before = stored === undefined ? undefined : asBuffer(stored).toString()
  if (before === url) return
  if (before !== undefined) {
    log.warn('the base URL is another than at the last start, so tokens of then are refused', { before, now: url })
  }
  try {
    await store.commit({ puts: [{ key: baseUrlKey, value: Buffer.from(url) }] })
  } catch (error) {
    // A disk without room is no reason not to serve: this is only kept for `token explain`.
    log.warn('the base URL could not be kept', { error: (error as Error).message })
  }
}

/** Serves until a signal asks to stop. Resolves with the exit code. */
export async function serve(config: ServeConfig, dataPath: string, terminal: Terminal): Promise<number> {
  const hangUp = ignoredHangUp()
  const running = await start(config, dataPath, terminal)
  if (running.operatorKey !== undefined) terminal.stdout(operatorKeyBlock(running.operatorKey))
  running.log.info('started', { version, url: running.url, data: dataPath })
  hangUp.does(() => running.reload(config.fixtures))
  const lines = config.fixtures.length > 0 ? await sampleGreeting(running) : ''
  // Whoever reads that it listens may send a signal at once.
  const asked = stopSignal()
  terminal.stdout(`postern listening on ${running.url}\n${lines}`)
  const signal = await asked
  hangUp.does(async () => {})
  await running.stop()
  running.log.info('stopped', { signal })
  return 0
}

/** For who tries the sample company. Of other fixtures nothing is shown: their keys are nobody else's business. */
async function sampleGreeting({ url, folder: { store, secrets } }: Running): Promise<string> {
  if (!(await acceptsSampleKey(store, secrets.apiKeyPepper))) return ''
  const { sampleSources } = await import('../maintenance/seed/sample.ts')
  return greeting('The sample company is loaded.', url, readFixtures(sampleSources()).fixtures, undefined)
}

/**
 * Until it is known what SIGHUP is to do, it does nothing; it never ends the process. But where the terminal that this
 * was started in was closed, nobody is left to stop it: that counts as SIGTERM.
 */
export function ignoredHangUp(): { does(work: () => Promise<void>): void } {
  const hasTerminal = isatty(0)
  let act: (() => Promise<void>) | undefined
  process.on('SIGHUP', () => {
    if (hasTerminal && !isTerminalThere()) process.kill(process.pid, 'SIGTERM')
    else void act?.()
  })
  return {
    does(work) {
      act = work
    },
  }
}

function isTerminalThere(): boolean {
  try {
    closeSync(openSync('/dev/tty', 'r'))
    return true
  } catch {
    return false
  }
}

const stopSignals = [
  ['SIGINT', 2],
  ['SIGTERM', 15],
] as const

/** Resolves at the first SIGINT or SIGTERM; a second one ends the process at once. */
export function stopSignal(): Promise<string> {
  return new Promise((resolve) => {
    const stop = (signal: string) => {
      for (const [name, number] of stopSignals) process.on(name, () => process.exit(128 + number))
      resolve(signal)
    }
    for (const [name] of stopSignals) process.once(name, stop)
  })
}

function operatorKeyBlock(key: string): string {
  const line = '─'.repeat(72)
  return `${line}\n  Operator key, shown this once. It reaches everything: keep it safe.\n\n  ${key}\n${line}\n`
}
