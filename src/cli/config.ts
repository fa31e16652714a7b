/** Settings of `serve` and `dev`: reads text from flags and the environment, returns checked values. */

import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { chosenKeyProblem } from '../auth/api-key.ts'
import { CommandError } from '../errors.ts'
import { type Network, readNetwork } from '../http/client-address.ts'
import { namespaceServersMax } from '../limits.ts'
import { type DatabaseFlags, type DatabasePlace, readDatabase } from '../maintenance/database.ts'
import { readTtl } from '../policy/ttl.ts'
import { didYouMean } from '../schema/near-name.ts'
import type { Usage } from '../storage/usage.ts'
import { type AllowedUpstream, readAllowedUpstream } from '../upstream/addresses.ts'
import { variableOf } from './serve-options.ts'

/** Stores contract 2: connections of a replica to PostgreSQL, `--store-pool`. Past it: exit 2. */
const storePoolMin = 2

/** Stores contract 2: see `storePoolMin`. Past it: exit 2. */
const storePoolMax = 100
/** Ours: the longest `--upstream-timeout`. Past it: refused at the start. */
const upstreamTimeoutMaxSeconds = 600

/** The flags as Commander returns them, unchecked. */
export interface ServeFlags extends DatabaseFlags {
  readonly host: string
  readonly port: string
  readonly fixtures: readonly string[]
  readonly baseUrl?: string
  readonly corsOrigin: readonly string[]
  readonly metricsListen?: string
  readonly mintRate: string
  readonly failureRate: string
  readonly trustedProxy: readonly string[]
  readonly upstreamCa: readonly string[]
  readonly writeRate: string
  readonly callRate: string
  /** False for `--no-call-record`. */
  readonly callRecord: boolean
  readonly namespaceConnections: string
  readonly namespaceBytes: string
  readonly namespacesPerUser: string
  readonly openRegistry?: boolean
  readonly allowUpstream: readonly string[]
  /** False for `--no-public-upstream`. */
  readonly publicUpstream: boolean
  readonly upstreamTimeout: string
  readonly allowSampleKeys?: boolean
  /** False for `--no-sign-in`. */
  readonly signIn: boolean
  /** False for `--no-client-document`. */
  readonly clientDocument: boolean
  readonly redirectScheme: readonly string[]
  /** Of `serve` alone, like the rest below. */
  readonly data?: string
  readonly storePool?: string
  readonly storeSync?: string
  readonly replica?: string
}

/** Checked settings. */
export interface ServeConfig {
  readonly host: string
  readonly port: number
  readonly fixtures: readonly string[]
  /** Without a trailing slash. Undefined: derived from host and port once the port is known. */
  readonly baseUrl: string | undefined
  readonly corsOrigins: readonly string[]
  /** Address of metrics and readiness; undefined for none. */
  readonly metrics: { readonly host: string; readonly port: number } | undefined
  /** Per second; 0 for no limit. */
  readonly rates: { readonly mints: number; readonly failures: number; readonly writes: number; readonly calls: number }
  /** Whether calls of tools are recorded in `calls.jsonl`. */
  readonly areCallsRecorded: boolean
  /** Whether `/v0.1/servers` answers readers without a credential. */
  readonly isRegistryOpen: boolean
  /** Namespaces that a user may own, of those made over HTTP; Infinity for no limit. */
  readonly namespacesPerUser: number
  /** Bounds of a namespace for writes over HTTP; Infinity for no limit. */
  readonly quota: Usage
  /** Reverse proxies whose headers are trusted for a client's address. */
  readonly trustedProxies: readonly Network[]
  /** Where connections may connect to, and the timeout for the head of an upstream's response. */
  readonly upstream: {
    readonly allowed: readonly AllowedUpstream[]
    readonly isPublicAllowed: boolean
    readonly timeoutMs: number
    /** Certificates of private certificate authorities, in PEM. */
    readonly authorities: readonly string[]
  }
  /** Whether clients can sign in with nothing but a URL, and where they may be sent back to. */
  readonly signIn: {
    readonly isOn: boolean
    readonly redirectSchemes: readonly string[]
    /** Whether authorization servers of upstreams may be given our client document. */
    readonly hasClientDocument: boolean
  }
  /** True if the publicly known sample keys are accepted on an address that other machines can reach. */
  readonly areSampleKeysAllowed: boolean
  /** The database that has the store; undefined for the store in the data folder. */
  readonly database:
    | {
        readonly place: DatabasePlace
        /** Connections at most. */
        readonly pool: number
        readonly isStandbyRequired: boolean
        /** Undefined: derived from the machine's name and the port. */
        readonly replica: string | undefined
      }
    | undefined
  /** The first operator key, if the environment gives one. */
  readonly operatorKey: string | undefined
}

/** Notes that the value of a flag is wrong, and why. Reading goes on, so that an operator sees all mistakes at once. */
type Complain = (flag: string, value: string | undefined, problem: string) => void

/** Checks all settings. Throws CommandError 2 (wrong usage) with all complaints at once, one a line. */
export function readServeConfig(flags: ServeFlags, env: Readonly<Record<string, string | undefined>>): ServeConfig {
  const complaints: string[] = []
  const complain: Complain = (flag, value, problem) => {
    // Name what the operator wrote: the variable if the value came from there.
    const variable = variableOf(flag)
    const name = value !== undefined && env[variable] === value ? variable : flag
    complaints.push(`${name}${value === undefined ? '' : ` ${value}`}: ${problem}`)
  }
  // An empty variable is none: that is how container files unset one.
  const operatorKey = env['POSTERN_API_KEY'] === '' ? undefined : env['POSTERN_API_KEY']
  const config: ServeConfig = {
    ...readListening(flags, complain),
    ...readBounds(flags, complain),
    upstream: readUpstream(flags, complain),
    signIn: readSignIn(flags, complain),
    database: readReplica(flags, complain),
    fixtures: flags.fixtures,
    areSampleKeysAllowed: flags.allowSampleKeys ?? false,
    operatorKey,
  }
  // Without the value: it is a secret.
  const keyProblem = operatorKey === undefined ? undefined : chosenKeyProblem(operatorKey)
  if (keyProblem !== undefined) complaints.push(`POSTERN_API_KEY: ${keyProblem}`)
  if (complaints.length > 0) throw new CommandError(complaints.join('\n'), 2)
  return config
}

/** Where to listen, for whom, and under which URL. */
function readListening(flags: ServeFlags, complain: Complain) {
  // Brackets belong to a URL; the socket wants the address alone.
  const host = flags.host.replace(/^\[(.*)\]$/, '$1')
  if (!/^[A-Za-z0-9.:_-]+$/.test(host)) complain('--host', flags.host, 'must be an address or a name')
  const port = /^\d{1,5}$/.test(flags.port) ? Number(flags.port) : Number.NaN
  if (!(port <= 65_535)) complain('--port', flags.port, 'must be a number from 0 to 65535')
  const baseUrl = flags.baseUrl?.replace(/\/+$/, '')
  if (baseUrl !== undefined && !isPlainUrl(baseUrl)) {
    complain('--base-url', flags.baseUrl, 'must be an http or https URL without user, query or fragment')
  }
  const corsOrigins = readAll('--cors-origin', flags.corsOrigin, complain, (origin) => {
    // Browsers send the origin in this form alone. Any other, such as one with a slash, would never match.
    const isOrigin = isPlainUrl(origin) && new URL(origin).origin === origin
    return isOrigin ? { origin } : 'must be an origin like https://app.example.com'
  }).map(({ origin }) => origin)
  const metrics = flags.metricsListen === undefined ? undefined : readListen(flags.metricsListen)
  if (metrics === undefined && flags.metricsListen !== undefined) {
    complain('--metrics-listen', flags.metricsListen, 'must be HOST:PORT, like 127.0.0.1:9464')
  }
  const trustedProxies = readAll('--trusted-proxy', flags.trustedProxy, complain, (text) => {
    return readNetwork(text) ?? 'must be an address or a CIDR like 10.0.0.0/8'
  })
  return { host, port, baseUrl, corsOrigins, metrics, trustedProxies }
}

/** The bounds of a key, an address and a namespace. */
function readBounds(flags: ServeFlags, complain: Complain) {
  const rate = (flag: string, text: string) => {
    const isRate = /^\d+(?:\.\d+)?$/.test(text) && Number(text) <= 10_000
    if (!isRate) complain(flag, text, 'must be a number from 0 to 10000')
    return Number(text)
  }
  const most = (flag: string, text: string) => {
    // Fifteen digits, so that each number is exact.
    if (!/^\d{1,15}$/.test(text)) complain(flag, text, 'must be a whole number; 0 for no limit')
    return Number(text) === 0 ? Number.POSITIVE_INFINITY : Number(text)
  }
  return {
    rates: {
      mints: rate('--mint-rate', flags.mintRate),
      failures: rate('--failure-rate', flags.failureRate),
      writes: rate('--write-rate', flags.writeRate),
      calls: rate('--call-rate', flags.callRate),
    },
    quota: {
      connections: most('--namespace-connections', flags.namespaceConnections),
      bytes: most('--namespace-bytes', flags.namespaceBytes),
      servers: namespaceServersMax,
    },
    namespacesPerUser: most('--namespaces-per-user', flags.namespacesPerUser),
    isRegistryOpen: flags.openRegistry === true,
    areCallsRecorded: flags.callRecord,
  }
}

/** Which MCP servers connections may reach, and how. */
function readUpstream(flags: ServeFlags, complain: Complain): ServeConfig['upstream'] {
  const allowed = readAll('--allow-upstream', flags.allowUpstream, complain, (text) => {
    return readAllowedUpstream(text) ?? 'must be a host, HOST:PORT or a CIDR like 10.0.0.0/8'
  })
  // Durations are read as a policy's `ttl` is, without its days.
  const timeout = /^\d{1,6}[smh]$/.test(flags.upstreamTimeout) ? readTtl(flags.upstreamTimeout) : { seconds: 0 }
  const timeoutSeconds = 'seconds' in timeout ? timeout.seconds : 0
  if (timeoutSeconds < 1 || timeoutSeconds > upstreamTimeoutMaxSeconds) {
    complain('--upstream-timeout', flags.upstreamTimeout, 'must be a duration from 1s to 10m, like 60s')
  }
  const authorities = readAll('--upstream-ca', flags.upstreamCa, complain, readCertificates).flat()
  return {
    allowed,
    isPublicAllowed: flags.publicUpstream,
    timeoutMs: timeoutSeconds * 1000,
    authorities,
  }
}

/** The database of `--store`, and how this replica uses it. */
function readReplica(flags: ServeFlags, complain: Complain): ServeConfig['database'] {
  const { store, storePool = '', storeSync, replica, data = '', baseUrl } = flags
  // An empty variable is none, as for POSTERN_API_KEY.
  if (store === undefined || store === '') {
    if (storeSync !== undefined) complain('--store-sync', storeSync, 'is of a database, which --store names')
    if (replica !== undefined) complain('--replica', replica, 'is of a database, which --store names')
    return undefined
  }
  const place = readDatabase(store, flags, data)
  // Without the value, which may have a password.
  if ('problem' in place) complain(place.flag, undefined, place.problem)
  if (baseUrl === undefined)
    complain(
      '--base-url',
      undefined,
      'must be given with --store: it is the issuer of tokens, the same for all replicas',
    )
  const pool = /^\d{1,3}$/.test(storePool) ? Number(storePool) : 0
  if (pool < storePoolMin || pool > storePoolMax) {
    complain('--store-pool', storePool, `must be a number from ${storePoolMin} to ${storePoolMax}`)
  }
  if (storeSync !== undefined && storeSync !== 'required') complain('--store-sync', storeSync, 'must be required')
  if (replica !== undefined && !/^[A-Za-z0-9._:[\]-]{1,64}$/.test(replica)) {
    complain('--replica', replica, 'must have at most 64 letters, digits, dots, colons and dashes')
  }
  if ('problem' in place) return undefined
  return { place, pool, isStandbyRequired: storeSync === 'required', replica }
}

/** Whether and where clients may sign in, and how postern itself does. */
function readSignIn(flags: ServeFlags, complain: Complain): ServeConfig['signIn'] {
  const redirectSchemes = readAll('--redirect-scheme', flags.redirectScheme, complain, (name) => {
    const isScheme = /^[a-z][a-z0-9+.-]*$/.test(name) && !unsafeSchemes.includes(name)
    return isScheme ? { name } : 'must be the scheme of an application, like myapp'
  }).map(({ name }) => name)
  return { isOn: flags.signIn, redirectSchemes, hasClientDocument: flags.clientDocument }
}

/**
 * The values of a repeatable flag, split at commas: an environment variable can only be set once. `read` returns what a
 * value means, or a text that says what is wrong with it.
 */
function readAll<T extends object>(
  flag: string,
  values: readonly string[],
  complain: Complain,
  read: (text: string) => T | string,
): T[] {
  return values
    .flatMap((value) => value.split(','))
    .flatMap((text) => {
      const one = read(text.trim())
      if (typeof one === 'object') return [one]
      complain(flag, text, one)
      return []
    })
}

/** Schemes that a browser handles itself; a redirect to one of them would run or show what a client sends. */
const unsafeSchemes = 'http https javascript data file blob about ftp ws wss view-source filesystem'.split(' ')

/** Variables without a flag: the first operator key, and a mark that `verify` sets for its child process. */
const settingsWithoutFlag = ['POSTERN_API_KEY', 'POSTERN_VERIFY_HERE']
/** Variables that Kubernetes sets for a service named postern. */
const ofService = /^POSTERN_(?:SERVICE_|PORT_\d)/

/**
 * A warning for each variable that begins with POSTERN_ and is not a setting. A misspelt one would be ignored silently.
 */
export function unknownSettings(
  env: Readonly<Record<string, string | undefined>>,
  ofFlags: readonly string[],
): string[] {
  const known = new Set([...ofFlags, ...settingsWithoutFlag])
  return Object.keys(env)
    .filter((name) => name.startsWith('POSTERN_') && !known.has(name) && !ofService.test(name))
    .map((name) => `the environment variable ${name} is not a setting${didYouMean(name, known)}`)
}

/** The PEM certificates of a file, or a text that says what is wrong with it. */
function readCertificates(file: string): string[] | string {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    return `cannot be read: ${(error as Error).message}`
  }
  const certificates = text.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []
  if (certificates.length === 0) return 'has no certificate in PEM (-----BEGIN CERTIFICATE-----)'
  const wrong = certificates.findIndex((certificate) => !isCertificate(certificate))
  return wrong < 0 ? certificates : `certificate ${wrong + 1} of it cannot be read`
}

function isCertificate(text: string): boolean {
  try {
    return new X509Certificate(text).subject !== undefined
  } catch {
    return false
  }
}

/** Parses HOST:PORT, with brackets around an IPv6 address. Undefined if it is neither. */
function readListen(text: string): { host: string; port: number } | undefined {
  const [, host = '', port = ''] = /^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):(\d{1,5})$/.exec(text) ?? []
  if (host === '' || Number(port) > 65_535) return undefined
  return { host: host.replace(/^\[(.*)\]$/, '$1'), port: Number(port) }
}

/** True for an http or https URL without user, query and fragment. */
function isPlainUrl(text: string): boolean {
  if (!URL.canParse(text)) return false
  const { protocol, username, password, search, hash } = new URL(text)
  return /^https?:$/.test(protocol) && username + password + search + hash === ''
}

/** `http://HOST:PORT`, with brackets around an IPv6 address. */
export function urlOf(host: string, port: number): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
}
