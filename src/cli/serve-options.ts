/**
 * The flags of `serve` and `dev`. Each is also an environment variable, whose name is the flag's in capitals:
 * `--mint-rate` is `POSTERN_MINT_RATE`. A flag wins over its variable.
 */

import { type Command, Option } from 'commander'
import {
  callsPerSecondDefault,
  failuresPerSecondDefault,
  mintsPerSecondDefault,
  namespaceBytesDefault,
  namespaceConnectionsDefault,
  namespacesPerUserDefault,
  storePoolDefault,
  upstreamTimeoutDefaultSeconds,
  writesPerSecondDefault,
} from '../limits.ts'
import { collect } from './options.ts'

/** Adds the flags. Values stay text here; `config.ts` checks them, so that all complaints are reported together. */
export function withServeOptions(command: Command): Command {
  for (const option of [...listening(), ...bounds(), ...upstreams(), ...signIn()]) command.addOption(option)
  return command
}

/** Adds the flags of a replica that shares a database with others. `dev` has none: its store is temporary. */
export function withReplicaOptions(command: Command): Command {
  for (const option of replica()) command.addOption(option)
  return command
}

/** How a replica uses the database that `--store` names. */
const replica = () => [
  setting('--store-pool <number>', 'connections to the database at most').default(String(storePoolDefault)),
  setting('--store-sync <when>', 'required: refuse writes while the database has no synchronous standby'),
  // Its default is known once the port is bound.
  setting('--replica <name>', 'name of this replica in logs and in the audit log (default: HOSTNAME:PORT)'),
]

/** Where clients reach this server, what it serves, and whose word it takes for a client's address. */
const listening = () => [
  setting('--host <address>', 'address to listen on').default('127.0.0.1'),
  setting('--port <number>', 'port to listen on; 0 picks a free one').default('8787'),
  list('--fixtures <dir>', 'folder of fixtures to load; repeatable'),
  // Its default is known once the port is bound.
  setting('--base-url <url>', 'URL that clients use; also the issuer of tokens (default: http://HOST:PORT)'),
  list('--cors-origin <origin>', 'origin of a web page that may call this server (CORS); repeatable'),
  // A listener of its own, so that metrics are never reachable where clients are.
  setting('--metrics-listen <host:port>', 'address for /metrics and /ready (default: none)'),
  list(
    '--trusted-proxy <cidr>',
    'address or network of a reverse proxy whose X-Forwarded-For or Forwarded is trusted; repeatable',
  ),
  // The sample's keys are published with the source. On an address that others reach, they are everybody's keys.
  setting(
    '--allow-sample-keys',
    'accept the publicly known keys of the sample fixtures on an address other than loopback',
  ),
]

/** The bounds of one key, address or namespace. Numbers are text here, as everything that an operator types. */
const bounds = () => [
  setting('--mint-rate <number>', 'tokens per second that one API key may mint; 0 for no limit').default(
    String(mintsPerSecondDefault),
  ),
  setting('--failure-rate <number>', 'invalid credentials per second from one address; 0 for no limit').default(
    String(failuresPerSecondDefault),
  ),
  setting(
    '--write-rate <number>',
    'connections and other records per second that one API key may write or delete; 0 for no limit',
  ).default(String(writesPerSecondDefault)),
  setting(
    '--call-rate <number>',
    'calls of tools per second of one API key with all its tokens; 0 for no limit',
  ).default(String(callsPerSecondDefault)),
  setting('--no-call-record', 'do not record calls of tools in calls.jsonl of the data folder'),
  setting('--namespace-connections <number>', 'connections that a namespace may hold; 0 for no limit').default(
    String(namespaceConnectionsDefault),
  ),
  setting(
    '--namespaces-per-user <number>',
    'namespaces that a user may own before making another is refused; 0 for no limit',
  ).default(String(namespacesPerUserDefault)),
  setting(
    '--open-registry',
    'answer /v0.1/servers without a credential, for editors that cannot send one: all but unlisted servers',
  ),
  setting(
    '--namespace-bytes <number>',
    'bytes of connections and servers that a namespace may hold; 0 for no limit',
  ).default(String(namespaceBytesDefault)),
]

/** Which MCP servers connections may reach, and how. Private addresses are closed unless they are listed. */
const upstreams = () => [
  list(
    '--allow-upstream <where>',
    'host, HOST:PORT or CIDR on the LAN or this machine that connections may reach; repeatable',
  ),
  setting('--no-public-upstream', 'allow only the upstreams listed in --allow-upstream'),
  list('--upstream-ca <file>', 'PEM file of a private certificate authority to trust for MCP servers; repeatable'),
  setting('--upstream-timeout <duration>', 'time limit for the first byte of an MCP server’s response').default(
    `${upstreamTimeoutDefaultSeconds}s`,
  ),
]

/** How people sign clients in, and how postern presents itself where it signs in to MCP servers. */
const signIn = () => [
  setting('--no-sign-in', 'do not let clients sign in with nothing but a URL (OAuth)'),
  // Authorization servers fetch that document, which they cannot where this server is not reachable for them.
  setting(
    '--no-client-document',
    'register with authorization servers of MCP servers instead of pointing them to a document of this server',
  ),
  // Any application of the user's device may claim a scheme, so each one that is accepted is listed.
  list(
    '--redirect-scheme <name>',
    'scheme of an application, such as myapp, that clients may be sent back to after signing in; repeatable',
  ),
]

/** A flag with its environment variable. */
function setting(flags: string, description: string): Option {
  const option = new Option(flags, description)
  return option.env(variableOf(option.long ?? flags))
}

/** A repeatable flag. Its variable has one value, so `config.ts` also splits at commas where values have none. */
function list(flags: string, description: string): Option {
  return setting(flags, description).argParser(collect).default([], 'none')
}

/** The environment variable of a flag: `POSTERN_MINT_RATE` of `--mint-rate`. */
export function variableOf(flag: string): string {
  return `POSTERN_${flag.slice(2).replaceAll('-', '_').toUpperCase()}`
}
