/** `postern serve`: opens the data folder, loads fixtures, listens, and shuts down gracefully. */

import { hostname, networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { createApp } from '../app.ts'
import { type GrantEnd, sweepGrants } from '../auth/grants.ts'
import { sweepRevocations } from '../auth/revocation.ts'
import { systemClock } from '../clock.ts'
import { CommandError } from '../errors.ts'
import { createFairness } from '../fairness/fairness.ts'
import { watchGarbage } from '../fairness/garbage.ts'
import { isNamespaceRegistryUrl } from '../features/registry/registry-handlers.ts'
import { isRegistryUrl } from '../features/servers/mcp-registry.ts'
import { Signers } from '../features/tokens/signers.ts'
import { sweepUpstreamClients } from '../features/upstream-sign-in/oauth-client.ts'
import { createClientSockets } from '../http/client-sockets.ts'
import { asPlatformError, errorResponse } from '../http/error-response.ts'
import { createGuard, isLoopback } from '../http/guard.ts'
import type { Handler } from '../http/handler.ts'
import { boundListeningSockets } from '../http/listening-sockets.ts'
import { rawPathRoutes } from '../http/raw-path.ts'
import * as limits from '../limits.ts'
import { type DataFolder, lockForServing, openDatabaseFolder, openDataFolder } from '../maintenance/data-folder.ts'
import { FixtureConflict } from '../maintenance/seed/desired.ts'
import { type Fixtures, readFixtures } from '../maintenance/seed/read-fixtures.ts'
import { acceptsSampleKey } from '../maintenance/seed/sample-keys.ts'
import { findFixtureFiles, sourceFile } from '../maintenance/seed/source-files.ts'
import { type Audit, openAuditLog } from '../ops/audit-log.ts'
import { CallLog } from '../ops/call-log.ts'
import { createLog, type Log } from '../ops/log.ts'
import { openTracing } from '../ops/tracing.ts'
import { beforeServing, removeAllDeleted } from '../storage/deleted-namespaces.ts'
import { removeStaged } from '../storage/staged.ts'
import type { Store } from '../storage/store.ts'
import { storeSeconds } from '../storage/store-seconds.ts'
import { createAddresses } from '../upstream/addresses.ts'
import { createUpstream } from '../upstream/pooled-upstream.ts'
import { traceUpstream } from '../upstream/traced-upstream.ts'
import { version } from '../version.ts'
import { type ServeConfig, urlOf } from './config.ts'
import { firstStart, operatorKeyBlock, recordBaseUrl } from './first-start.ts'
import { checkSampleKeys, fixtureLoader, type LoadFixtures } from './fixture-loader.ts'
import { greeting } from './greeting.ts'
import { listenError } from './listen-error.ts'
import { serveMetrics } from './metrics-listener.ts'
import { createReload } from './reload.ts'
import { startSampleTraffic } from './sample-traffic.ts'
import { ignoredHangUp, stopSignal } from './stop-signals.ts'
import type { Terminal } from './terminal.ts'
import { isThisServer } from './this-server.ts'

/** Contract 16.7: milliseconds that this machine's clock may differ from the database's. Past it: the log warns. */
const clockOffsetWarnMs = 5000

/** Time between deletions of expired grants and clients. Past it: they are kept until the next. */
const grantSweepIntervalMs = 60 * 60 * 1000
/** Milliseconds in which a replica that stops ends connections with their next response. Past it: they are closed. */
const replicaDrainMs = 1000
/** Milliseconds between two looks at the clock of a database. Past it: the next look. */
const clockCheckIntervalMs = 60 * 1000

export type Running = Awaited<ReturnType<typeof start>>

/** Starts a server. On failure closes all but the store, and throws CommandError or StoreError for the operator. */
export async function start(config: ServeConfig, dataPath: string, terminal: Terminal) {
  let replica: string | undefined
  const log = createLog(terminal.stderr, () => ({ replica }))
  // Looked for before a data folder is made: a mistyped path leaves nothing behind.
  const fixtures = findFixtureFiles(config.fixtures)
  using cleanup = new DisposableStack()
  // First: two servers on one folder would each believe that they alone load fixtures and write the audit log.
  cleanup.use(lockForServing(dataPath))
  let listener = listen(config, log)
  cleanup.defer(() => void close(listener))
  const port = listener.server.port ?? 0
  // A replica that is not ready refuses connections instead of answering 503: load balancers retry a refused connection
  // elsewhere, but pass a 503 on.
  if (config.database !== undefined) await close(listener)
  replica = config.database && (config.database.replica ?? `${hostname()}:${port}`)
  const folder = await openFolder(config, dataPath, { label: `postern ${replica}`, log, tell: terminal.stderr })
  const { store, database, secrets } = folder
  const { audit, callLog } = openLogs(config, dataPath, replica, log)
  cleanup.defer(() => audit.close())
  cleanup.defer(() => callLog?.close())
  const load = fixtureLoader(folder, config, { log, audit })
  await loadAtStart(folder, fixtures, load, log)
  await checkSampleKeys(folder, config, log)

  const url = config.baseUrl ?? urlOf(config.host, port)
  const localAddresses = addressesOfMachine()
  const { host, corsOrigins, isRegistryOpen } = config
  const isPublic = (url: string) => isNamespaceRegistryUrl(url) || (isRegistryOpen && isRegistryUrl(url))
  const guard = createGuard({ host, baseUrl: url, corsOrigins, localAddresses, isPublic })
  // Undefined if metrics are disabled: nothing is counted, and the metrics library is not loaded.
  const metrics =
    config.metrics &&
    (await serveMetrics(
      { ...config.metrics, baseUrl: url, localAddresses },
      { store, dataPath, logs: [audit, callLog], pageCache: () => app.pageCache() },
    ))
  if (metrics !== undefined) log.info('metrics listening', { url: metrics.url })
  cleanup.defer(() => metrics?.stop())
  const signers = new Signers()
  cleanup.defer(() => signers.close())
  const fairness = createFairness()
  cleanup.use(watchGarbage())
  const tracing = await openTracing(process.env)
  if (tracing !== undefined) log.info('requests are traced')
  const isSelf = isThisServer([{ host, port }, metrics?.listener], url, localAddresses, database)
  const { allowedUpstreams: allowed, isPublicUpstreamAllowed: isPublicAllowed } = config
  const upstream = createUpstream(createAddresses({ allowed, isPublicAllowed, isSelf, lookups: fairness.lookups }), {
    fairness,
    pseudonym: secrets.pseudonym,
    authorities: config.upstreamAuthorities,
    observe: metrics?.observer.upstreamResponded,
  })
  const app = createApp({
    ...{ tracing, fairness, signers, store, secrets, issuer: url, guard, audit, callLog, log },
    upstream: traceUpstream(upstream, tracing),
    ...settingsOf(config),
    sockets: createClientSockets(() => listener.server, config.trustedProxies),
    isRegistryOpen,
    clock: systemClock,
    ...(metrics && { observer: metrics.observer }),
  })
  if (database !== undefined && replica !== undefined) {
    const addresses = isWildcard(host) ? localAddresses.filter((address) => !isLoopback(address)) : [host]
    await database.join({ name: replica, baseUrl: url, addresses: addresses.map((one) => `${one} ${port}`) })
    cleanup.defer(repeatClockCheck(store, log))
  }
  // Last, so that a failed start has not created a key that was never shown.
  const operatorKey = await firstStart(folder, config.operatorKey, log)
  await recordBaseUrl(store, url, log)
  if (config.baseUrl === undefined && isWildcard(config.host))
    log.warn('tokens name an issuer that clients cannot reach: set --base-url', { issuer: url })
  cleanup.defer(repeatSweeps(store, app.continueDeletions, audit, log))
  if (database !== undefined) listener = listen({ ...config, port }, log)
  else if (metrics !== undefined) boundAgain(listener, log)
  const { server, unwatch } = listener
  server.reload({ fetch: app.fetch, routes: rawPathRoutes(app.fetch) })
  // Ahead of the first list, which would wait ten seconds where there are very many. If it fails, that list says so.
  app.readCatalogue().catch(() => {})

  // Everything is open: from here on `stop` closes it, not the end of this function.
  const held = cleanup.move()
  return {
    ...{ url: urlOf(host, port), folder, log, load },
    /** The operator key created by this start, if any. It is shown once and cannot be read again. */
    operatorKey,
    reload: createReload([audit, callLog], load, log),
    /** Finishes requests in progress, for at most `shutdownTimeoutMs`, and closes the store. */
    async stop() {
      if (database !== undefined) await sendElsewhere(server, app.fetch)
      unwatch()
      await endRequests(server, callLog, log)
      await store.close()
      await tracing?.close()
      held.dispose()
    },
  }
}

/** Ends the server with its connections. */
async function close({ server, unwatch }: ReturnType<typeof listen>): Promise<void> {
  unwatch()
  await server.stop(true)
}

/** Lets requests finish, closes the connections of those that are late, and waits for the lines of their calls. */
async function endRequests(server: Bun.Server<undefined>, callLog: CallLog | undefined, log: Log): Promise<void> {
  const timer = setTimeout(() => void server.stop(true), limits.shutdownTimeoutMs)
  await server.stop()
  clearTimeout(timer)
  // Each owner's aborted calls end a few in each pass of the event loop.
  const lost = await callLog?.recorded(limits.shutdownRecordMs)
  if (lost) log.warn('calls ended, and are not in the record of calls', { calls: lost })
}

const addressesOfMachine = () =>
  Object.values(networkInterfaces()).flatMap((list) => list?.map(({ address }) => address) ?? [])

/** The settings as the application takes them. */
function settingsOf({ upstreamTimeoutMs, namespacesPerUser, hasConsole, hasSampleTraffic, ...rest }: ServeConfig) {
  const { redirectSchemes, hasClientDocument, namespaceConnections: connections, namespaceBytes: bytes } = rest
  const signIn = { isOn: rest.isSignInOn, redirectSchemes, hasClientDocument }
  return {
    ...{ upstreamTimeoutMs, namespacesPerUser, hasConsole, hasSampleTraffic },
    authorization: { ...signIn, takesDocuments: rest.isPublicUpstreamAllowed },
    rates: { mints: rest.mintRate, failures: rest.failureRate, writes: rest.writeRate, calls: rest.callRate },
    quota: { connections, bytes, servers: limits.namespaceServersMax },
  }
}

/** Removes what an interrupted start left, and loads the fixtures. Throws CommandError. */
async function loadAtStart(
  { store, database }: DataFolder,
  fixtures: readonly string[],
  load: LoadFixtures,
  log: Log,
): Promise<void> {
  // No other load is running: we hold the lock, of the folder or of the database.
  await (database === undefined ? removeStaged(store) : database.exclusively(() => removeStaged(store)))
  if (fixtures.length === 0) return
  const loadAll = () => load(fixtures.map(sourceFile))
  const orConflict = (act: (conflict: FixtureConflict) => unknown) => (error: unknown) => {
    if (!(error instanceof FixtureConflict)) throw error
    return act(error)
  }
  // One may bring a namespace whose deletion was not finished. Without one, deletions go on once the server answers:
  // that of somebody's namespace of 100,000 connections takes a minute.
  const loaded = loadAll().catch(orConflict(() => removeAllDeleted(store, beforeServing).then(loadAll)))
  // Somebody's things over HTTP must not keep the server from starting (contract, 11.4).
  await loaded.catch(
    orConflict(({ message }) => log.warn('fixtures not loaded; the existing records stay', { problems: message })),
  )
}

/** The audit log, and the record of calls unless it is switched off. */
function openLogs({ areCallsRecorded }: ServeConfig, dataPath: string, replica: string | undefined, log: Log) {
  const common = { clock: systemClock, replica }
  const audit = openAuditLog(dataPath, {
    ...common,
    onFailure: (error, line) =>
      log.error('the audit log cannot be written', { error: String(error), done: line && JSON.stringify(line) }),
  })
  if (!areCallsRecorded) return { audit, callLog: undefined }
  const callLog = new CallLog(join(dataPath, 'calls.jsonl'), {
    ...common,
    onFailure: (error) => log.error('the record of calls cannot be written', { error: String(error) }),
  })
  return { audit, callLog }
}

/** Opens the store of the folder, or of the database. Throws CommandError and StoreError. */
function openFolder(
  { database }: ServeConfig,
  path: string,
  about: { readonly label: string; readonly log: Log; readonly tell: Terminal['stderr'] },
): Promise<DataFolder> {
  if (database === undefined) return openDataFolder(path)
  const { place, storePool: pool, storeSync } = database
  return openDatabaseFolder(path, place, { mayMake: true, pool, isStandbyRequired: storeSync === true, ...about })
}

/** Binds the port first, so that a busy one fails at once. Until the application is ready, requests get a 503. */
function listen({ host, port }: ServeConfig, log: Log) {
  try {
    const server = Bun.serve({
      hostname: host,
      port,
      reusePort: false,
      development: false,
      idleTimeout: limits.idleTimeoutSeconds,
      // Bodies are bounded where they are read, with an explanation; the runtime's own 413 has an empty body. This
      // bounds a body that arrives in chunks, and so announces no length.
      maxRequestBodySize: limits.chunkedBodyBytesMax,
      fetch: () => Response.json({ error: 'unavailable', message: 'postern is starting' }, { status: 503 }),
      // Only a bug outside the application gets here. Otherwise the runtime would respond with its own page.
      error: (thrown) => errorResponse(asPlatformError(thrown)),
    })
    return { server, unwatch: boundSockets(log) }
  } catch (error) {
    throw listenError(error, host, port, '--host and --port')
  }
}

/** With the sockets that were opened since. */
function boundAgain(listener: ReturnType<typeof listen>, log: Log): void {
  listener.unwatch()
  listener.unwatch = boundSockets(log)
}

/** Bounds what the sockets that are listening now receive and accept at once. */
function boundSockets(log: Log) {
  const unbounded = 'received bytes cannot be limited here, so one client may make others wait'
  return boundListeningSockets((error) => log.warn(unbounded, { error }))
}

/** Does the work now and at every interval. Returns a function that stops it. */
function repeat(work: () => Promise<void>, intervalMs: number): () => void {
  void work()
  const timer = setInterval(() => void work(), intervalMs).unref()
  return () => clearInterval(timer)
}

/** Deletes records of sign-ins that are over, now and every hour. Returns a function that stops it. */
function repeatSweeps(store: Store, continueDeletions: () => Promise<void>, audit: Audit, log: Log): () => void {
  const sweepAllGrants = async (now: number) => {
    for (const grantId of await sweepGrants(store, now))
      await audit.record('grant.ended', { grantId, reason: 'too many grants of the user' satisfies GrantEnd })
  }
  const sweep = async () => {
    const now = await storeSeconds(store, systemClock)
    const sweeps = [sweepRevocations(store, now), sweepAllGrants(now), sweepUpstreamClients(store)]
    await Promise.all([...sweeps, continueDeletions()])
  }
  const failed = 'cleanup of what has expired or was deleted failed; it is tried again every hour'
  return repeat(() => sweep().catch((error) => log.warn(failed, { error: String(error) })), grantSweepIntervalMs)
}

/**
 * Ends each connection with its next response, for a moment. A proxy keeps connections and may send a request over one
 * that is just being closed; it does not repeat a POST at another replica, as it cannot know that nobody read it.
 */
async function sendElsewhere(server: Bun.Server<undefined>, fetch: Handler): Promise<void> {
  const last: Handler = async (request) => {
    const response = await fetch(request)
    response.headers.set('connection', 'close')
    return response
  }
  server.reload({ fetch: last, routes: rawPathRoutes(last) })
  await wait(replicaDrainMs)
}

/** Warns every minute while this machine's clock is not the database's. */
function repeatClockCheck(store: Store, log: Log): () => void {
  const check = async () => {
    const { clockOffsetMs } = await store.health()
    if (Math.abs(clockOffsetMs) < clockOffsetWarnMs) return
    log.warn("this machine's clock and the database's differ: synchronize both", { seconds: clockOffsetMs / 1000 })
  }
  // An outage is logged where it is noticed.
  return repeat(() => check().catch(() => {}), clockCheckIntervalMs)
}

const isWildcard = (host: string) => host === '0.0.0.0' || host === '::'

/** Serves until a signal. */
export async function serve(config: ServeConfig, dataPath: string, terminal: Terminal): Promise<void> {
  if (config.hasSampleTraffic && config.fixtures.length === 0) throw noSample()
  const hangUp = ignoredHangUp()
  const running = await start(config, dataPath, terminal)
  if (running.operatorKey !== undefined)
    terminal.stdout(operatorKeyBlock(running.operatorKey, config.baseUrl ?? running.url))
  const { database } = running.folder
  const durability = (await database?.health())?.durability
  running.log.info('started', { version, url: running.url, data: dataPath, ...(durability && { durability }) })
  hangUp.work = () => running.reload(config.fixtures)
  const sample = config.fixtures.length > 0 ? await loadedSample(running) : undefined
  const greeted = { ...running, first: 'The sample company is loaded.', hasConsole: config.hasConsole }
  const lines = sample === undefined ? '' : await greeting(greeted, sample)
  const endTraffic = await trafficOf(config, running, sample).catch(async (error) => {
    await running.stop()
    throw error
  })
  // Install the handlers before printing the line: a script that reads it may send a signal at once.
  const asked = stopSignal()
  terminal.stdout(`postern listening on ${running.url}\n${lines}`)
  const signal = await asked
  hangUp.work = undefined
  await endTraffic?.()
  await running.stop()
  running.log.info('stopped', { signal })
}

/** The sample's fixtures, if they are what is loaded. Of others nothing is printed or called: their keys are secret. */
async function loadedSample({ folder }: Running): Promise<Fixtures | undefined> {
  return (await acceptsSampleKey(folder.store, folder.secrets.apiKeyPepper)) ? sampleFixtures() : undefined
}

export async function sampleFixtures(): Promise<Fixtures> {
  const { sampleSources } = await import('../maintenance/seed/sample.ts')
  return (await readFixtures(sampleSources())).fixtures
}

/** Begins sample traffic, if it is wanted. Returns its end. Rejects with CommandError where no sample is loaded. */
export async function trafficOf(config: ServeConfig, running: Running, sample: Fixtures | undefined) {
  if (!config.hasSampleTraffic) return undefined
  if (sample !== undefined) return startSampleTraffic(running.url, sample, running.log)
  throw noSample()
}

const noSample = () =>
  new CommandError('--sample-traffic needs the sample company: add --fixtures fixtures, or leave it out')
