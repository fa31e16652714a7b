/**
 * A platform for tests: the whole application on a store in memory, a clock that stands still, keys that are always the
 * same.
 */

import { createHash } from 'node:crypto'
import { type AppDeps, createApp, type Rates } from '../../src/app.ts'
import { apiKeyDigest } from '../../src/auth/api-key.ts'
import { changeSigningKeys, type SigningKeyRecord } from '../../src/auth/signing-keys.ts'
import { createFairness, type Fairness } from '../../src/fairness/fairness.ts'
import { isNamespaceRegistryUrl } from '../../src/features/registry/registry-handlers.ts'
import { isRegistryUrl } from '../../src/features/servers/mcp-registry.ts'
import { createGuard } from '../../src/http/guard.ts'
import { loadFixtures } from '../../src/maintenance/seed/load-fixtures.ts'
import { readFixtures } from '../../src/maintenance/seed/read-fixtures.ts'
import { sampleSources } from '../../src/maintenance/seed/sample.ts'
import type { SourceFile } from '../../src/maintenance/seed/source-files.ts'
import { verifyStore } from '../../src/maintenance/verify.ts'
import type { CallLog } from '../../src/ops/call-log.ts'
import type { Log } from '../../src/ops/log.ts'
import { keyOf, signingKeysKey } from '../../src/storage/keys.ts'
import type { Scan } from '../../src/storage/lmdb/scan.ts'
import type { Entry, Store } from '../../src/storage/store.ts'
import type { Usage } from '../../src/storage/usage.ts'
import { type Upstream, UpstreamError } from '../../src/upstream/upstream.ts'
import { clockOf } from './clock.ts'
import { openMemoryStore } from './memory-store.ts'
import { type SampleUser, sampleKeys } from './sample.ts'
import { quickSignatureOf } from './sign-token.ts'

// The framework collects garbage after each application that it compiles: a tenth of the time of all tests.
const collect = Bun.gc
Bun.gc = (isUrgent) => (isUrgent ? collect(true) : 0)

export const issuer = 'http://localhost:8787'
export const startOfTime = Date.parse('2026-03-02T09:00:00.000Z')

export interface TestPlatform {
  readonly store: Store
  readonly fairness: Fairness
  readonly pepper: Buffer
  readonly logged: string[]
  readonly audited: Record<string, unknown>[]
  /** The delays of mocks, in milliseconds; nobody really waited. */
  readonly waited: number[]
  /** What happens while a mock waits; assign it. */
  whileWaiting?: () => Promise<unknown>
  /** Replaces the signing keys. */
  setSigningKeys(records: SigningKeyRecord[]): Promise<unknown>
  /** Milliseconds; move it by assigning. */
  now: number
  fetch(path: string, init?: RequestInit): Promise<Response>
  /** The same, not waited for. */
  answer(path: string, init?: RequestInit): Response | Promise<Response>
}

export const silent: Log = { info() {}, warn() {}, error() {} }

export function seed(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

/** A key that is the same for the same text. */
export function signingKeyRecord(
  text: string,
  state: SigningKeyRecord['state'] = 'active',
  since = 0,
): SigningKeyRecord {
  return { seed: seed(text).toString('base64url'), state, since }
}

export interface TestPlatformOptions {
  readonly store?: Store
  /** The sample fixtures by default. */
  readonly sources?: readonly SourceFile[]
  readonly corsOrigins?: readonly string[]
  /** The base URL; `http://localhost:8787` by default. */
  readonly issuer?: string
  /** Whether clients can sign in; true by default. */
  readonly signIn?: boolean
  /** True by default. */
  readonly takesDocuments?: boolean
  /** None by default. */
  readonly redirectSchemes?: readonly string[]
  /** No limits by default. */
  readonly rates?: Partial<Rates>
  /** As in a server by default. */
  readonly namespacesPerUser?: number
  /** None by default. */
  readonly callLog?: CallLog
  /** Of an audit log for `GET /audit`; an empty one by default. */
  readonly auditPath?: string
  /** False by default. */
  readonly isRegistryOpen?: boolean
  /** None by default. */
  readonly quota?: Partial<Usage>
  readonly every?: AppDeps['every']
  /** True by default. */
  readonly hasConsole?: boolean
  /** On this thread by default. */
  readonly signers?: AppDeps['signers']
  /** None can be reached by default. */
  readonly upstream?: Upstream
  /** So long by default that no busy machine is late. */
  readonly upstreamTimeoutMs?: number
  /** As in a server by default; `POSTERN_TEST_FAST_LANE=off` runs every suite without it. */
  readonly fastLane?: boolean
  /** As in a server by default. */
  readonly fairness?: Fairness
  /** None by default. */
  readonly tracing?: AppDeps['tracing']
}

const sample = sampleSources()
/** The store of a platform with the sample, as loaded: loading it anew would take a third of every platform's time. */
let loadedSample: readonly Entry[] | undefined
/** Reading fixtures takes longer than all else that a platform needs. */
const readBefore = new WeakMap<readonly SourceFile[], ReturnType<typeof readFixtures>>()

function readOnce(sources: readonly SourceFile[]): ReturnType<typeof readFixtures> {
  const read = readBefore.get(sources) ?? readFixtures(sources)
  readBefore.set(sources, read)
  return read
}

export async function createTestPlatform(options: TestPlatformOptions = {}): Promise<TestPlatform> {
  const baseUrl = options.issuer ?? issuer
  const fairness = options.fairness ?? createFairness()
  const isSampleAlone = options.store === undefined && options.sources === undefined
  const store = withinOnePart(options.store ?? openMemoryStore(isSampleAlone ? loadedSample : undefined))
  const pepper = seed('pepper')
  const logged: string[] = []
  const audited: Record<string, unknown>[] = []
  const waited: number[] = []
  const note = (event: string, fields: object = {}) => void logged.push(JSON.stringify({ event, ...fields }))
  const log: Log = { info: note, warn: note, error: note }
  if (!isSampleAlone || loadedSample === undefined) {
    const { fixtures, problems } = await readOnce(options.sources ?? sample)
    if (problems.length > 0) throw new Error(JSON.stringify(problems))
    await loadFixtures(store, fixtures, 'test', { pepper, now: new Date(startOfTime), log })
  }
  if (isSampleAlone)
    loadedSample ??= (await store.range({ gte: Buffer.of(0), lt: Buffer.of(0xff), limit: 100_000 })).entries
  const sealingKey = seed('sealing key')
  const platform: TestPlatform = {
    store,
    fairness,
    pepper,
    logged,
    audited,
    waited,
    setSigningKeys: (records) => changeSigningKeys(store, sealingKey, () => records),
    now: startOfTime,
    fetch: async (path, init) => platform.answer(path, init),
    answer(path, init = {}) {
      const headers = new Headers(init.headers)
      if (!headers.has('host')) headers.set('host', new URL(baseUrl).host)
      // As from a proxy that ends TLS and takes the path of the base URL away.
      return app.fetch(new Request(`http://${new URL(baseUrl).host}${path}`, { ...init, headers }))
    },
  }
  // A store that was used before keeps its own.
  if ((await store.get(signingKeysKey)) === undefined)
    await platform.setSigningKeys([signingKeyRecord('next signing key', 'next'), signingKeyRecord('signing key')])
  const app = createApp({
    store,
    secrets: {
      apiKeyPepper: pepper,
      cursorKey: seed('cursor key'),
      sealingKey,
      headersKey: seed('headers key'),
      sessionKey: seed('session key'),
      tokenIdKey: seed('token id key'),
      callKey: seed('call key'),
      storeCheckKey: seed('store check'),
      signInKey: seed('sign-in key'),
      pseudonym: 'postern-test',
    },
    issuer: baseUrl,
    guard: createGuard({
      host: '127.0.0.1',
      baseUrl,
      corsOrigins: options.corsOrigins ?? [],
      localAddresses: [],
      isPublic: (url) => isNamespaceRegistryUrl(url) || (options.isRegistryOpen === true && isRegistryUrl(url)),
    }),
    upstream: options.upstream ?? {
      send: () => Promise.reject(new UpstreamError('down', 'there is nothing here')),
    },
    upstreamTimeoutMs: options.upstreamTimeoutMs ?? 60_000,
    sockets: {
      async wait(milliseconds) {
        waited.push(milliseconds)
        await platform.whileWaiting?.()
      },
      disableIdleTimeout: () => () => {},
      addressOf: (request) => request.headers.get('x-test-address') ?? 'here',
      connectionOf: () => 'one',
    },
    signers: options.signers ?? { sign: async (text, { secretKey }) => quickSignatureOf(text, secretKey) },
    fairness,
    tracing: options.tracing,
    clock: clockOf(() => platform.now),
    log,
    audit: {
      path: options.auditPath ?? '/dev/null',
      requireWritable() {},
      requireRoom() {},
      record: async (event, fields) => void audited.push({ event, ...fields }),
      recordDone: async (event, fields) => void audited.push({ event, ...fields }),
      recordBestEffort: (event, { userId, keyId }, fields) => void audited.push({ event, userId, keyId, ...fields }),
    },
    authorization: {
      isOn: options.signIn ?? true,
      redirectSchemes: options.redirectSchemes ?? [],
      hasClientDocument: true,
      takesDocuments: options.takesDocuments ?? true,
    },
    ...(options.callLog && { callLog: options.callLog }),
    rates: { mints: 0, failures: 0, writes: 0, calls: 0, ...options.rates },
    isRegistryOpen: options.isRegistryOpen ?? false,
    namespacesPerUser: options.namespacesPerUser ?? 3,
    quota: { connections: Infinity, bytes: Infinity, servers: Infinity, ...options.quota },
    ...(options.every && { every: options.every }),
    hasConsole: options.hasConsole ?? true,
    fastLane: options.fastLane ?? process.env['POSTERN_TEST_FAST_LANE'] !== 'off',
  })
  return platform
}

/**
 * The store, which refuses a commit that spans two namespaces, or a namespace and the directory (contract, 15.5): so
 * namespaces can be kept apart one day. One thing may stand with the directory: the usage of the namespace whose
 * servers are written, which counts them with connections. Loads are not made for requests.
 */
function withinOnePart(store: Store): Store {
  return {
    ...store,
    commit(write) {
      const [puts, deletes] = [[...(write.puts ?? [])], [...(write.deletes ?? [])]]
      const keys = [...[...(write.checks ?? []), ...puts].map(({ key }) => key), ...deletes]
      const parts = new Set(keys.map(partOf).filter((part) => part !== undefined))
      const usages = new Set((write.counts ?? []).map(({ key }) => partOf(key)))
      if (usages.size > 1 || !parts.has('the directory')) for (const part of usages) parts.add(part as string)
      if (parts.size > 1) throw new Error(`a commit spans ${[...parts].join(' and ')}`)
      return store.commit({ ...write, puts, deletes })
    },
  }
}

/** The part of the store that a key is in; undefined for sign-in, which is in neither. */
function partOf(key: Uint8Array): string | undefined {
  const text = Buffer.from(key).toString()
  if (/^[cpxguE]/.test(text)) return `the namespace ${text.slice(1).split('\0')[0]}`
  return /^[GomnkhsarytbSqvNKDP]/.test(text) ? 'the directory' : undefined
}

/** All that is kept or written anywhere: keys and values of the store, the log and the audit log. */
export async function everythingKept({ store, logged, audited }: TestPlatform): Promise<string> {
  const { entries } = await store.range({ gte: Buffer.of(0), lt: Buffer.of(0xff), limit: 100_000 })
  const records = entries.map(({ key, value }) => `${Buffer.from(key)} ${Buffer.from(value)}`)
  return [...records, ...logged, JSON.stringify(audited)].join('\n')
}

/** What `postern store verify` would say of the store. */
export async function problemsOf({ store }: Pick<TestPlatform, 'store'>): Promise<string[]> {
  const { entries } = await store.range({ gte: Buffer.of(0), lt: Buffer.of(0xff), limit: 100_000 })
  const scan: Scan = async (take) => take(entries)
  const found = await verifyStore(scan, seed('sealing key'), () => {})
  return [...found.damaged, ...found.problems, ...found.indexProblems]
}

/** The id of a sample key. */
export async function keyIdOf({ store, pepper }: TestPlatform, user: SampleUser): Promise<string> {
  const keyId = await store.get(keyOf('apiKeyDigest', apiKeyDigest(pepper, sampleKeys[user])))
  return Buffer.from(keyId ?? []).toString()
}

/** The fixture text of a document, as a source. */
export function source(file: string, document: unknown): SourceFile {
  return { file, read: () => Buffer.from(typeof document === 'string' ? document : JSON.stringify(document)) }
}
