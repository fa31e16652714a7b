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

export function withServeOptions(command: Command): Command {
  return command
    .addOption(new Option('--host <address>', 'address to listen on').env('POSTERN_HOST').default('127.0.0.1'))
    .addOption(
      new Option('--port <number>', 'port to listen on; 0 picks a free one').env('POSTERN_PORT').default('8787'),
    )
    .addOption(
      new Option('--fixtures <dir>', 'folder of fixtures to load; may be given again')
        .env('POSTERN_FIXTURES')
        .argParser(collect)
        .default([], 'none'),
    )
    .addOption(
      new Option(
        '--base-url <url>',
        'what clients call this server; also the issuer of its tokens (default: http://HOST:PORT)',
      ).env('POSTERN_BASE_URL'),
    )
    .addOption(
      new Option('--cors-origin <origin>', 'a web page that may call from a browser; may be given again')
        .argParser(collect)
        .default([], 'none'),
    )
    .addOption(
      new Option('--metrics-listen <host:port>', 'serve /metrics and /ready there (default: nowhere)').env(
        'POSTERN_METRICS_LISTEN',
      ),
    )
    .addOption(
      new Option('--mint-rate <number>', 'tokens a second that one API key may mint; 0 for no limit')
        .env('POSTERN_MINT_RATE')
        .default(String(mintsPerSecondDefault)),
    )
    .addOption(
      new Option('--failure-rate <number>', 'bad credentials a second from one address; 0 for no limit')
        .env('POSTERN_FAILURE_RATE')
        .default(String(failuresPerSecondDefault)),
    )
    .addOption(
      new Option('--write-rate <number>', 'connections a second that one API key may write or delete; 0 for no limit')
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
        'a proxy in front, whose X-Forwarded-For or Forwarded says where requests come from; may be given again',
      )
        .env('POSTERN_TRUSTED_PROXY')
        .argParser(collect)
        .default([], 'none'),
    )
    .addOption(
      new Option(
        '--allow-upstream <where>',
        'a host, HOST:PORT or CIDR of the LAN or this machine that connections may point to; may be given again',
      )
        .env('POSTERN_ALLOW_UPSTREAM')
        .argParser(collect)
        .default([], 'none'),
    )
    .addOption(
      new Option('--no-public-upstream', 'connections may point nowhere but where --allow-upstream says').env(
        'POSTERN_NO_PUBLIC_UPSTREAM',
      ),
    )
    .addOption(
      new Option(
        '--upstream-ca <file>',
        'certificates, in PEM, of private authorities that MCP servers may be certified by; may be given again',
      )
        .env('POSTERN_UPSTREAM_CA')
        .argParser(collect)
        .default([], 'none'),
    )
    .addOption(
      new Option('--upstream-timeout <duration>', 'how long an MCP server may take to begin its answer')
        .env('POSTERN_UPSTREAM_TIMEOUT')
        .default(`${upstreamTimeoutDefaultSeconds}s`),
    )
    .addOption(
      new Option(
        '--upstream-client <name>',
        'what sends requests to MCP servers: parser, or node if a later runtime breaks that one; node takes more time a call',
      )
        .env('POSTERN_UPSTREAM_CLIENT')
        .default('parser'),
    )
    .addOption(
      new Option(
        '--allow-sample-keys',
        'let the keys of the sample fixtures, which everybody has, be used on an address that is not loopback',
      ).env('POSTERN_ALLOW_SAMPLE_KEYS'),
    )
}
