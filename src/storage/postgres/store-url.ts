/**
 * The URL of a store in PostgreSQL: `postgres://user:password@h1:5432,h2:5432/db?sslmode=…`, as libpq writes it
 * (contract, 16.1 and 16.2). Parts that are not understood are refused: a setting that has no effect is worse than
 * none.
 */

import { readFileSync } from 'node:fs'
import ipaddr from 'ipaddr.js'
import { didYouMean } from '../../schema/near-name.ts'

/** One server, or one pooler in front of it. */
export interface Host {
  readonly host: string
  readonly port: number
}

/** Where the database is, and as whom it is entered. Never printed: it has the password. */
export interface Address {
  /** Several are tried: the primary may be any of them. */
  readonly hosts: readonly Host[]
  readonly user: string
  readonly password: string
  readonly database: string
  /** `authorities`: certificates to trust, in PEM; undefined for those of the system. */
  readonly tls: { readonly mode: 'disable' | 'require' | 'verify-full'; readonly authorities?: string }
  /** False behind a pooler that gives each transaction another connection: then statements have no names. */
  readonly hasNamedStatements: boolean
}

const shape = /^postgres(?:ql)?:\/\/(?:([^:@/?#]*)(?::([^@/?#]*))?@)?([^/?#@]+)\/([^/?#]+)(?:\?([^#]*))?$/i
const parameters = ['sslmode', 'sslrootcert', 'prepare'] as const
const modes = ['disable', 'require', 'verify-full'] as const

/** The address, or a text that says what is wrong with the URL; the text never has its password. */
export function readAddress(url: string): Address | string {
  const [, user = '', password = '', hostList = '', database = '', query = ''] = shape.exec(url) ?? []
  if (hostList === '') return 'must be like postgres://user@host:5432/database'
  const hosts = hostList.split(',').map(readHost)
  if (!hosts.every((host) => host !== undefined)) return 'its hosts must be like db1.example.com:5432,db2.example.com'
  if (user === '') return 'names no user: postgres://user@…'
  const given = new URLSearchParams(query)
  for (const name of given.keys()) {
    if (!parameters.some((known) => known === name))
      return `has an unknown parameter ${name}${didYouMean(name, parameters)}`
  }
  const prepare = given.get('prepare') ?? 'true'
  if (prepare !== 'true' && prepare !== 'false') return 'its prepare must be true or false'
  const tls = readTls(given, hosts)
  if (typeof tls === 'string') return tls
  try {
    return {
      hosts,
      user: decodeURIComponent(user),
      password: decodeURIComponent(password),
      database: decodeURIComponent(database),
      tls,
      hasNamedStatements: prepare === 'true',
    }
  } catch {
    return 'has a % that begins no escape: write %25 for it'
  }
}

/** On this machine's loopback nobody is in between, so that no certificate is asked for. */
function readTls(given: URLSearchParams, hosts: readonly Host[]): Address['tls'] | string {
  const isLocal = hosts.every(isLoopback)
  const mode = given.get('sslmode') ?? (isLocal ? 'disable' : 'verify-full')
  const known = modes.find((name) => name === mode)
  if (known === undefined) return `its sslmode must be ${modes.join(', ')}`
  if (known === 'disable' && !isLocal)
    return 'sends passwords and records in the clear: sslmode=disable is for loopback'
  const file = given.get('sslrootcert')
  if (known !== 'verify-full')
    return file === null ? { mode: known } : 'has an sslrootcert, which only verify-full reads'
  if (file === null) return { mode: known }
  try {
    return { mode: known, authorities: readFileSync(file, 'utf8') }
  } catch (error) {
    return `its sslrootcert cannot be read: ${(error as Error).message}`
  }
}

/** HOST, HOST:PORT, or an IPv6 address in brackets. */
function readHost(text: string): Host | undefined {
  const [, host = '', port = '5432'] = /^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::(\d{1,5}))?$/.exec(text) ?? []
  if (host === '' || Number(port) < 1 || Number(port) > 65_535) return undefined
  return { host: host.replace(/^\[(.*)\]$/, '$1'), port: Number(port) }
}

function isLoopback({ host }: Host): boolean {
  return host === 'localhost' || (ipaddr.isValid(host) && ipaddr.process(host).range() === 'loopback')
}

/** HOST:PORT, for messages. */
export function nameOf({ host, port }: Host): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`
}
