/** The settings of `serve` and `dev`. Each flag wins over its variable: `--mint-rate` over `POSTERN_MINT_RATE`. */

import { type Command, Option } from 'commander'
import { chosenKeyProblem } from '../auth/chosen-key.ts'
import { CommandError } from '../errors.ts'
import { readNetwork } from '../http/client-address.ts'
import * as limits from '../limits.ts'
import { type DatabaseFlags, type DatabasePlace, readDatabase } from '../maintenance/database-place.ts'
import { didYouMean } from '../schema/near-name.ts'
import { readAllowedUpstream } from '../upstream/addresses.ts'
import * as texts from './flag-texts.ts'
import { collect } from './options.ts'

/** Contract 16.1: the fewest connections of a replica to PostgreSQL, `--store-pool`. Below it: exit 2. */
const storePoolMin = 2
/** Contract 16.1: the most connections of a replica to PostgreSQL, `--store-pool`. Past it: exit 2. */
const storePoolMax = 100

/** A flag with its environment variable. `T`: what its text means, which `read` returns; it throws CommandError. */
class Setting<T> extends Option {
  declare readonly meaning: T

  readonly read: (text: string) => unknown

  constructor(flags: string, description: string, read: (text: string) => unknown) {
    super(flags, description)
    this.read = read
    this.env(variableOf(this.long ?? flags))
  }
}

const asItIs = (text: string) => text

/** A flag that has a value: its default, if none is given. */
const setting = <T>(flags: string, description: string, preset: string | number, read: (text: string) => T) =>
  new Setting<T>(flags, description, read).default(String(preset))

/** A flag whose value is a bound; 0 means no bound. */
const bound = (read: (text: string) => number) => (flag: string, description: string, preset: number) =>
  setting(`${flag} <number>`, `${description}; 0 for no limit`, preset, read)
const rate = bound(texts.readRate)
const most = bound(texts.readMost)

const optional = <T>(flags: string, description: string, read: (text: string) => T) =>
  new Setting<T | undefined>(flags, description, read)

const onOff = (flags: string, description: string) => new Setting<boolean>(flags, description, asItIs)

/** A repeatable flag. Its variable has one value, so its values are split at commas. */
const list = <T>(flags: string, description: string, read: (text: string) => T | T[]) =>
  new Setting<T[]>(flags, `${description}; repeatable`, read).argParser(collect).default([], 'none')

/** Settings under a heading of their own in the help. */
function under<T extends Readonly<Record<string, Option>>>(heading: string, group: T): T {
  for (const one of Object.values(group)) one.helpGroup(heading)
  return group
}

const settings = {
  ...under('Network:', {
    host: setting('--host <address>', 'address to listen on', '127.0.0.1', texts.readHost),
    port: setting('--port <number>', 'port to listen on; 0 picks a free one', 8787, texts.readPort),
    // Without a trailing slash. Its default is known once the port is bound.
    baseUrl: optional(
      '--base-url <url>',
      'URL that clients use; also the issuer of tokens (default: http://HOST:PORT)',
      texts.readBaseUrl,
    ),
    corsOrigins: list('--cors-origin <origin>', 'origin of a web page that may call postern (CORS)', texts.readOrigin),
    // A listener of its own, so that metrics are never reachable where clients are.
    metrics: optional(
      '--metrics-listen <host:port>',
      'address for /metrics and /ready (default: none)',
      texts.readListen,
    ),
    trustedProxies: list(
      '--trusted-proxy <cidr>',
      'address or network of a reverse proxy whose X-Forwarded-For or Forwarded is trusted',
      (text) => readNetwork(text) ?? texts.refuse('must be an address or a CIDR like 10.0.0.0/8'),
    ),
  }),
  ...under('Features:', {
    fixtures: list('--fixtures <dir>', 'folder of fixtures to load', asItIs),
    // The sample's keys are published with the source. On an address that others reach, they are everybody's keys.
    areSampleKeysAllowed: onOff(
      '--allow-sample-keys',
      'accept the publicly known keys of the sample fixtures on an address other than loopback',
    ),
    isRegistryOpen: onOff(
      '--open-registry',
      'show all servers except unlisted ones at /v0.1/servers without a credential, for editors that cannot send one',
    ),
    areCallsRecorded: onOff('--no-call-record', 'do not record calls of tools in calls.jsonl of the data folder'),
    hasConsole: onOff('--no-console', 'turn off the console in the browser, with its sessions and streams of events'),
    hasSampleTraffic: onOff(
      '--sample-traffic',
      'call mocks of the sample once a second, so that there are calls to look at',
    ),
  }),
  // Of one key, address or namespace. Rates are per second; 0 is none.
  ...under('Limits:', {
    mintRate: rate('--mint-rate', 'tokens per second that one API key may mint', limits.mintsPerSecondDefault),
    failureRate: rate(
      '--failure-rate',
      'invalid credentials per second from one address',
      limits.failuresPerSecondDefault,
    ),
    writeRate: rate(
      '--write-rate',
      'connections and other records per second that one API key may write or delete',
      limits.writesPerSecondDefault,
    ),
    callRate: rate(
      '--call-rate',
      'calls of tools per second that one API key and all its tokens may make together',
      limits.callsPerSecondDefault,
    ),
    namespaceConnections: most(
      '--namespace-connections',
      'connections that a namespace may hold',
      limits.namespaceConnectionsDefault,
    ),
    namespacesPerUser: most(
      '--namespaces-per-user',
      'namespaces that a user may own before postern refuses to create another',
      limits.namespacesPerUserDefault,
    ),
    namespaceBytes: most(
      '--namespace-bytes',
      'bytes of connections and servers that a namespace may hold',
      limits.namespaceBytesDefault,
    ),
  }),
  // Private addresses are closed unless they are listed.
  ...under('MCP servers:', {
    allowedUpstreams: list(
      '--allow-upstream <where>',
      'host, HOST:PORT or CIDR on the LAN or this machine that connections may reach',
      (text) => readAllowedUpstream(text) ?? texts.refuse('must be a host, HOST:PORT or a CIDR like 10.0.0.0/8'),
    ),
    isPublicUpstreamAllowed: onOff('--no-public-upstream', 'allow only the servers listed in --allow-upstream'),
    upstreamAuthorities: list(
      '--upstream-ca <file>',
      'PEM file of a private certificate authority to trust for MCP servers',
      texts.readCertificates,
    ),
    upstreamTimeoutMs: setting(
      '--upstream-timeout <duration>',
      'time limit for the first byte of an MCP server’s response',
      `${limits.upstreamTimeoutDefaultSeconds}s`,
      texts.readTimeout,
    ),
  }),
  ...under('Sign-in:', {
    isSignInOn: onOff('--no-sign-in', 'turn off the sign-in of clients with OAuth'),
    // Authorization servers fetch that document, which they cannot where this server is not reachable for them.
    hasClientDocument: onOff(
      '--no-client-document',
      'register at the authorization servers of MCP servers, instead of sending them the URL of a client document',
    ),
    // Any application of the user's device may claim a scheme, so each one that is accepted is listed.
    redirectSchemes: list(
      '--redirect-scheme <name>',
      'URL scheme of an application, such as myapp, to which postern may redirect after a sign-in',
      texts.readScheme,
    ),
  }),
}

/** How a replica uses the database that `--store` names. `dev` has none of it: its store is temporary. */
const replicaSettings = {
  storePool: setting(
    '--store-pool <number>',
    'connections to the database that postern may open',
    limits.storePoolDefault,
    texts.numberFrom(storePoolMin, storePoolMax, /^\d{1,3}$/),
  ),
  storeSync: optional(
    '--store-sync <when>',
    'required: refuse writes while the database has no synchronous standby',
    (text) => text === 'required' || texts.refuse('the only value is "required"'),
  ),
  // Its default is known once the port is bound.
  replica: optional(
    '--replica <name>',
    'name of this replica in logs and in the audit log (default: HOSTNAME:PORT)',
    texts.readReplica,
  ),
}

/** Adds the flags. Values stay text, which `readServeConfig` reads: so all complaints are reported together. */
export function withServeOptions(command: Command, { isReplica }: { readonly isReplica: boolean }): Command {
  const all = Object.values({ ...(isReplica && replicaSettings), ...settings })
  for (const one of all) command.addOption(one)
  // Commander takes any text of a variable for on.
  return command.hook('preAction', (_, of) => {
    for (const one of all.filter(({ required, optional }) => !required && !optional))
      if (of.getOptionValueSource(one.attributeName()) === 'env')
        of.setOptionValueWithSource(one.attributeName(), isOn(one, process.env) !== one.negate, 'env')
  })
}

/** The meaning of the variable of a flag that has no value. Throws CommandError 2. */
function isOn({ envVar = '' }: Option, env: NodeJS.ProcessEnv): boolean {
  const text = env[envVar] ?? ''
  if (/^(?:1|true|yes|on)$/i.test(text)) return true
  if (/^(?:0|false|no|off)?$/i.test(text)) return false
  throw new CommandError(`${envVar}=${text}: must be 1 for on, or 0 for off`, 2)
}

type Meanings<Of> = { readonly [Name in keyof Of]: Of[Name] extends Setting<infer T> ? T : never }

/** Settings that were checked. */
export interface ServeConfig extends Meanings<typeof settings> {
  /** The database that has the store; undefined for the store in the data folder. */
  readonly database: ({ readonly place: DatabasePlace } & Meanings<typeof replicaSettings>) | undefined
  /** The first operator key, if the environment gives one. */
  readonly operatorKey: string | undefined
}

/** The flags as Commander returns them, unchecked. */
export interface ServeFlags extends DatabaseFlags {
  readonly [name: string]: unknown
  readonly data?: string
}

/** Checks all settings. Throws CommandError 2 (wrong usage) with all complaints at once, one a line. */
export function readServeConfig(flags: ServeFlags, env: NodeJS.ProcessEnv): ServeConfig {
  const complaints: string[] = []
  function meaningOf(one: Setting<unknown>): unknown {
    const given = flags[one.attributeName()]
    // Flags without a value, and folders, whose names may have commas.
    if (one.read === asItIs) return given ?? false
    if (Array.isArray(given)) return given.flatMap((text) => text.split(',')).flatMap((text) => tried(one, text.trim()))
    return typeof given === 'string' ? tried(one, given)[0] : given
  }
  /** Reading goes on after a mistake, so that an operator sees all at once. */
  function tried({ long, envVar = '', read }: Setting<unknown>, text: string): unknown[] {
    try {
      return [read(text)].flat()
    } catch (error) {
      // Name what the operator wrote: the variable if the value came from there.
      complaints.push(`${env[envVar] === text ? `${envVar}=` : `${long} `}${text}: ${(error as CommandError).message}`)
      return []
    }
  }
  const meanings = <Of extends Record<string, Setting<unknown>>>(of: Of) =>
    Object.fromEntries(Object.entries(of).map(([name, one]) => [name, meaningOf(one)])) as Meanings<Of>
  const read = meanings(settings)
  const database = readDatabaseOf(flags, read.baseUrl, meanings(replicaSettings), complaints)
  // An empty variable is none: that is how container files unset one.
  const operatorKey = env['POSTERN_API_KEY'] || undefined
  // Without the value: it is a secret.
  const keyProblem = operatorKey === undefined ? undefined : chosenKeyProblem(operatorKey)
  if (keyProblem !== undefined) complaints.push(`POSTERN_API_KEY: ${keyProblem}`)
  if (complaints.length > 0) throw new CommandError(complaints.join('\n'), 2)
  return { ...read, database, operatorKey }
}

function readDatabaseOf(
  flags: ServeFlags,
  baseUrl: string | undefined,
  replica: Meanings<typeof replicaSettings>,
  complaints: string[],
): ServeConfig['database'] {
  // An empty variable is none, as for POSTERN_API_KEY.
  if (!flags.store) {
    const ofDatabase = ['storeSync', 'replica', 'instanceSecretFile'] as const
    for (const name of ofDatabase.filter((one) => flags[one] !== undefined && flags[one] !== ''))
      complaints.push(`${flagOf(name)} ${flags[name]}: works only with --store`)
    return undefined
  }
  const place = readDatabase(flags.store, flags, flags.data ?? '')
  // Without the value, which may have a password.
  if ('problem' in place) complaints.push(`${place.flag}: ${place.problem}`)
  if (baseUrl === undefined)
    complaints.push('--base-url: must be given with --store: it is the issuer of tokens, the same for all replicas')
  return 'problem' in place ? undefined : { place, ...replica }
}

/** Variables without a flag: the first operator key, and a mark that `verify` sets for its child process. */
const settingsWithoutFlag = ['POSTERN_API_KEY', 'POSTERN_VERIFY_HERE']
/** Variables that Kubernetes sets for a service named postern. */
const ofService = /^POSTERN_(?:SERVICE_|PORT_\d)/

/** A warning for each variable that begins with POSTERN_ and is no setting: a misspelt one would be ignored. */
export function unknownSettings(env: NodeJS.ProcessEnv, ofFlags: readonly string[]): string[] {
  const known = new Set([...ofFlags, ...settingsWithoutFlag])
  return Object.keys(env)
    .filter((name) => name.startsWith('POSTERN_') && !known.has(name) && !ofService.test(name))
    .map((name) => `the environment variable ${name} is not a setting${didYouMean(name, known)}`)
}

/** The environment variable of a flag: `POSTERN_MINT_RATE` of `--mint-rate`. */
export function variableOf(flag: string): string {
  return `POSTERN_${flag.slice(2).replaceAll('-', '_').toUpperCase()}`
}

/** The flag of a name: `--store-sync` of `storeSync`. */
function flagOf(name: string): string {
  return `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`
}

/** `http://HOST:PORT`, with brackets around an IPv6 address. */
export function urlOf(host: string, port: number): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
}
