/** Settings of `serve` and `dev`: reads text from flags and the environment, returns checked values. */

import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { chosenKeyProblem } from '../auth/api-key.ts'
import { CommandError } from '../errors.ts'
import { type Network, readNetwork } from '../http/client-address.ts'
import { upstreamTimeoutMaxSeconds } from '../limits.ts'
import { readTtl } from '../policy/duration.ts'
import { didYouMean } from '../schema/near-name.ts'
import { type AllowedUpstream, readAllowedUpstream } from '../upstream/addresses.ts'
import { type ClientName, clientNames } from '../upstream/client-names.ts'

/** The flags as Commander returns them, unchecked. */
export interface ServeFlags {
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
  readonly namespaceConnections: string
  readonly namespaceBytes: string
  readonly allowUpstream: readonly string[]
  /** False for `--no-public-upstream`. */
  readonly publicUpstream: boolean
  readonly upstreamTimeout: string
  readonly upstreamClient: string
  readonly allowSampleKeys?: boolean
  /** False for `--no-sign-in`. */
  readonly signIn: boolean
  /** False for `--no-client-document`. */
  readonly clientDocument: boolean
  readonly redirectScheme: readonly string[]
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
  readonly rates: { readonly mints: number; readonly failures: number; readonly writes: number }
  /** Bounds of a namespace for writes over HTTP; Infinity for no limit. */
  readonly quota: { readonly connections: number; readonly bytes: number }
  /** Reverse proxies whose headers are trusted for a client's address. */
  readonly trustedProxies: readonly Network[]
  /** Where connections may connect to, and the timeout for the head of an upstream's response. */
  readonly upstream: {
    readonly allowed: readonly AllowedUpstream[]
    readonly isPublicAllowed: boolean
    readonly timeoutMs: number
    /** Certificates of private certificate authorities, in PEM. */
    readonly authorities: readonly string[]
    readonly client: ClientName
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
  /** The first operator key, if the environment gives one. */
  readonly operatorKey: string | undefined
}

/** Checks all settings. Throws CommandError 2 (wrong usage) with all complaints at once, one a line. */
export function readServeConfig(flags: ServeFlags, env: Readonly<Record<string, string | undefined>>): ServeConfig {
  const complaints: string[] = []
  /** The flag or the environment variable that gave this value, for a complaint. */
  const given = (flag: string, value: string | undefined) => {
    const variable = `POSTERN_${flag.slice(2).replaceAll('-', '_').toUpperCase()}`
    return `${env[variable] === value ? variable : flag} ${value}`
  }
  const host = flags.host.replace(/^\[(.*)\]$/, '$1')
  const port = /^\d{1,5}$/.test(flags.port) ? Number(flags.port) : Number.NaN
  if (!(port <= 65_535)) complaints.push(`${given('--port', flags.port)}: must be a number from 0 to 65535`)
  if (!/^[A-Za-z0-9.:_-]+$/.test(host)) complaints.push(`${given('--host', flags.host)}: must be an address or a name`)
  const baseUrl = flags.baseUrl?.replace(/\/+$/, '')
  if (baseUrl !== undefined && !isPlainUrl(baseUrl)) {
    complaints.push(
      `${given('--base-url', flags.baseUrl)}: must be an http or https URL without user, query or fragment`,
    )
  }
  for (const origin of flags.corsOrigin) {
    if (!isPlainUrl(origin) || new URL(origin).origin !== origin) {
      complaints.push(`--cors-origin ${origin}: must be an origin like https://app.example.com`)
    }
  }
  const metrics = flags.metricsListen === undefined ? undefined : readListen(flags.metricsListen)
  if (metrics === undefined && flags.metricsListen !== undefined) {
    complaints.push(`${given('--metrics-listen', flags.metricsListen)}: must be HOST:PORT, like 127.0.0.1:9464`)
  }
  const rate = (flag: string, text: string) => {
    const read = /^\d+(?:\.\d+)?$/.test(text) && Number(text) <= 10_000
    if (!read) complaints.push(`${given(flag, text)}: must be a number from 0 to 10000`)
    return Number(text)
  }
  const rates = {
    mints: rate('--mint-rate', flags.mintRate),
    failures: rate('--failure-rate', flags.failureRate),
    writes: rate('--write-rate', flags.writeRate),
  }
  const most = (flag: string, text: string) => {
    if (!/^\d{1,15}$/.test(text)) complaints.push(`${given(flag, text)}: must be a whole number; 0 for no limit`)
    return Number(text) === 0 ? Number.POSITIVE_INFINITY : Number(text)
  }
  const quota = {
    connections: most('--namespace-connections', flags.namespaceConnections),
    bytes: most('--namespace-bytes', flags.namespaceBytes),
  }
  const trustedProxies: Network[] = []
  for (const text of flags.trustedProxy.flatMap((given) => given.split(','))) {
    const network = readNetwork(text.trim())
    if (network === undefined) complaints.push(`--trusted-proxy ${text}: must be an address or a CIDR like 10.0.0.0/8`)
    else trustedProxies.push(network)
  }
  const allowed: AllowedUpstream[] = []
  for (const text of flags.allowUpstream.flatMap((given) => given.split(','))) {
    const one = readAllowedUpstream(text.trim())
    if (one === undefined)
      complaints.push(`--allow-upstream ${text}: must be a host, HOST:PORT or a CIDR like 10.0.0.0/8`)
    else allowed.push(one)
  }
  const timeoutMs = /^\d{1,6}[smh]$/.test(flags.upstreamTimeout) ? readTtl(flags.upstreamTimeout) : { seconds: 0 }
  const timeoutSeconds = 'seconds' in timeoutMs ? timeoutMs.seconds : 0
  if (timeoutSeconds < 1 || timeoutSeconds > upstreamTimeoutMaxSeconds) {
    complaints.push(
      `${given('--upstream-timeout', flags.upstreamTimeout)}: must be a duration from 1s to 10m, like 60s`,
    )
  }
  const authorities: string[] = []
  for (const file of flags.upstreamCa.flatMap((given) => given.split(','))) {
    const read = readCertificates(file.trim())
    if (typeof read === 'string') complaints.push(`--upstream-ca ${file}: ${read}`)
    else authorities.push(...read)
  }
  const client = clientNames.find((name) => name === flags.upstreamClient)
  if (client === undefined) {
    complaints.push(`${given('--upstream-client', flags.upstreamClient)}: must be ${clientNames.join(' or ')}`)
  }
  const upstream = {
    allowed,
    isPublicAllowed: flags.publicUpstream,
    timeoutMs: timeoutSeconds * 1000,
    authorities,
    client: client ?? 'parser',
  }
  const redirectSchemes = flags.redirectScheme.flatMap((given) => given.split(',')).map((name) => name.trim())
  for (const name of redirectSchemes) {
    if (!/^[a-z][a-z0-9+.-]*$/.test(name) || unsafeSchemes.includes(name)) {
      complaints.push(`--redirect-scheme ${name}: must be the scheme of an application, like myapp`)
    }
  }
  const operatorKey = env['POSTERN_API_KEY'] === '' ? undefined : env['POSTERN_API_KEY']
  const keyProblem = operatorKey === undefined ? undefined : chosenKeyProblem(operatorKey)
  if (keyProblem !== undefined) complaints.push(`POSTERN_API_KEY: ${keyProblem}`)
  if (complaints.length > 0) throw new CommandError(complaints.join('\n'), 2)
  const { fixtures, corsOrigin: corsOrigins, allowSampleKeys: areSampleKeysAllowed = false } = flags
  return {
    host,
    port,
    fixtures,
    baseUrl,
    corsOrigins,
    metrics,
    rates,
    quota,
    trustedProxies,
    upstream,
    signIn: { isOn: flags.signIn, redirectSchemes, hasClientDocument: flags.clientDocument },
    areSampleKeysAllowed,
    operatorKey,
  }
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
