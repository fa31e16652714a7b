/** The flags of `serve` and `dev`, each with its environment variable and default. */

import { type Command, Option } from 'commander'
import {
  failuresPerSecondDefault,
  mintsPerSecondDefault,
  namespaceBytesDefault,
  namespaceConnectionsDefault,
  upstreamTimeoutDefaultSeconds,
  writesPerSecondDefault,
} from '../limits.ts'
import { collect } from './options.ts'

/** Adds the flags. Values stay text here; `config.ts` checks them, so that all complaints are reported together. */
export function withServeOptions(command: Command): Command {
  return command
    .addOption(new Option('--host <address>', 'address to listen on').env('POSTERN_HOST').default('127.0.0.1'))
    .addOption(
      new Option('--port <number>', 'port to listen on; 0 picks a free one').env('POSTERN_PORT').default('8787'),
    )
    .addOption(
      new Option('--fixtures <dir>', 'folder of fixtures to load; repeatable')
        .env('POSTERN_FIXTURES')
        .argParser(collect)
        .default([], 'none'),
    )
    .addOption(
      new Option('--base-url <url>', 'URL that clients use; also the issuer of tokens (default: http://HOST:PORT)').env(
        'POSTERN_BASE_URL',
      ),
    )
    .addOption(
      new Option('--cors-origin <origin>', 'allowed CORS origin (repeatable)').argParser(collect).default([], 'none'),
    )
    .addOption(
      new Option('--metrics-listen <host:port>', 'address for /metrics and /ready (default: none)').env(
        'POSTERN_METRICS_LISTEN',
      ),
    )
    .addOption(
      new Option('--mint-rate <number>', 'tokens per second that one API key may mint; 0 for no limit')
        .env('POSTERN_MINT_RATE')
        .default(String(mintsPerSecondDefault)),
    )
    .addOption(
      new Option('--failure-rate <number>', 'invalid credentials per second from one address; 0 for no limit')
        .env('POSTERN_FAILURE_RATE')
        .default(String(failuresPerSecondDefault)),
    )
    .addOption(
      new Option('--write-rate <number>', 'connections per second that one API key may write or delete; 0 for no limit')
        .env('POSTERN_WRITE_RATE')
        .default(String(writesPerSecondDefault)),
    )
    .addOption(
      new Option('--namespace-connections <number>', 'connections that a namespace may hold; 0 for no limit')
        .env('POSTERN_NAMESPACE_CONNECTIONS')
        .default(String(namespaceConnectionsDefault)),
    )
    .addOption(
      new Option('--namespace-bytes <number>', 'bytes of connections that a namespace may hold; 0 for no limit')
        .env('POSTERN_NAMESPACE_BYTES')
        .default(String(namespaceBytesDefault)),
    )
    .addOption(
      new Option(
        '--trusted-proxy <cidr>',
        'address or network of a reverse proxy whose X-Forwarded-For or Forwarded is trusted; repeatable',
      )
        .env('POSTERN_TRUSTED_PROXY')
        .argParser(collect)
        .default([], 'none'),
    )
    .addOption(
      new Option(
        '--allow-upstream <where>',
        'host, HOST:PORT or CIDR on the LAN or this machine that connections may reach; repeatable',
      )
        .env('POSTERN_ALLOW_UPSTREAM')
        .argParser(collect)
        .default([], 'none'),
    )
    .addOption(
      new Option('--no-public-upstream', 'allow only the upstreams listed in --allow-upstream').env(
        'POSTERN_NO_PUBLIC_UPSTREAM',
      ),
    )
    .addOption(
      new Option(
        '--upstream-ca <file>',
        'PEM file of a private certificate authority to trust for MCP servers; repeatable',
      )
        .env('POSTERN_UPSTREAM_CA')
        .argParser(collect)
        .default([], 'none'),
    )
    .addOption(
      new Option('--upstream-timeout <duration>', 'time limit for the first byte of an MCP server’s response')
        .env('POSTERN_UPSTREAM_TIMEOUT')
        .default(`${upstreamTimeoutDefaultSeconds}s`),
    )
    .addOption(
      new Option(
        '--upstream-client <name>',
        'HTTP client for MCP servers: parser (faster), or node (only documented APIs of the runtime)',
      )
        .env('POSTERN_UPSTREAM_CLIENT')
        .default('parser'),
    )
    .addOption(
      new Option('--no-sign-in', 'do not let clients sign in with nothing but a URL (OAuth)').env('POSTERN_NO_SIGN_IN'),
    )
    .addOption(
      new Option(
        '--no-client-document',
        'register with authorization servers of MCP servers instead of pointing them to a document of this server',
      ).env('POSTERN_NO_CLIENT_DOCUMENT'),
    )
    .addOption(
      new Option(
        '--redirect-scheme <name>',
        'scheme of an application, such as myapp, that clients may be sent back to after signing in; repeatable',
      )
        .env('POSTERN_REDIRECT_SCHEME')
        .argParser(collect)
        .default([], 'none'),
    )
    .addOption(
      new Option(
        '--allow-sample-keys',
        'accept the publicly known keys of the sample fixtures on an address other than loopback',
      ).env('POSTERN_ALLOW_SAMPLE_KEYS'),
    )
}
