/** Requests of commands to a running platform, over HTTP, with the user's key or token. */

import { CommandError } from '../../errors.ts'
import type { ConnectionPage } from '../../model/connection.ts'
import type { Pagination } from '../../model/registry.ts'
import type { Terminal } from '../terminal.ts'
import { type Environment, readHosts } from './hosts.ts'

export interface ClientFlags {
  readonly url?: string
  /** Without it, the only namespace that the caller has access to. */
  readonly namespace?: string
  readonly json?: boolean
}

/** What an action of a command gets. */
export interface CommandContext {
  readonly flags: ClientFlags & { readonly yes?: boolean }
  readonly environment: Environment
  readonly terminal: Terminal
}

export interface ApiClient {
  readonly url: string
  /** The body of a successful response, which is not checked to be a `T`. Throws CommandError for any other. */
  request<T = unknown>(method: string, path: string, body?: unknown): Promise<T>
  /** The namespace that was named, or the only one that the caller has access to. Throws CommandError. */
  namespace(): Promise<string>
}

/** A name as one segment of a path. Throws CommandError for an empty name, `.` and `..`: a URL would drop them. */
export function pathSegment(name: string): string {
  if (name === '' || name === '.' || name === '..')
    throw new CommandError(`${JSON.stringify(name)} is not a valid name`)
  return encodeURIComponent(name)
}

/** `key`: instead of the one that is kept. Throws CommandError if no platform is set, or no key for it is known. */
export function openClient({ url: given, namespace }: ClientFlags, environment: Environment, key?: string): ApiClient {
  const hosts = readHosts(environment)
  // An empty variable counts as unset.
  const named = given || environment['POSTERN_URL'] || hosts.current
  if (named === undefined)
    throw new CommandError('no platform is set: run `postern login URL`, or set POSTERN_URL and POSTERN_TOKEN')
  const url = cleanUrl(named)
  const credential = key ?? (environment['POSTERN_TOKEN'] || hosts.keys[url])
  if (credential === undefined)
    throw new CommandError(`no key for ${url}: run \`postern login ${url}\`, or set POSTERN_TOKEN`)

  async function request<T>(method: string, path: string, body?: unknown): Promise<T> {
    const init = {
      method,
      headers: {
        authorization: `Bearer ${credential}`,
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    }
    const response = await fetch(`${url}${path}`, init).catch((error: Error) => {
      throw new CommandError(`cannot reach ${url}: ${error.message}`, 1, { code: 'unreachable' })
    })
    const answer = await response.json().catch(() => undefined)
    if (response.ok && answer !== undefined) return answer as T
    if (response.ok) throw new CommandError(`${url} does not answer as postern does: check the URL`)
    const { error = 'error', message = error } = (answer ?? {}) as { error?: string; message?: string }
    const isFromEnvironment = key === undefined && credential === environment['POSTERN_TOKEN']
    const next = isFromEnvironment
      ? 'set POSTERN_TOKEN to a valid one, or unset it'
      : `run \`postern login ${url}\` with a valid key`
    const text = response.status === 401 ? `${message}; ${next}` : message
    throw new CommandError(text, 1, { code: error, status: response.status })
  }

  return {
    url,
    request,
    async namespace() {
      if (namespace !== undefined && namespace !== '') return namespace
      const path = '/namespaces?pageSize=2'
      const { namespaces } = await request<{ namespaces: readonly { name: string }[] }>('GET', path)
      const [only, other] = namespaces
      if (only === undefined)
        throw new CommandError('you have access to no namespace: create one with `postern namespace add NAME`')
      if (other !== undefined) throw new CommandError('you have access to several namespaces: choose one with -n')
      return only.name
    },
  }
}

/** All items of a list that is read by page numbers, as one page. `items`: the field of the body that has them. */
export async function allPages<Items extends string, Item>(
  { request }: ApiClient,
  path: string,
  items: Items,
  pageSize: number,
): Promise<Record<Items, Item[]> & { pagination: Pagination }> {
  const all: Item[] = []
  for (let page = 1; ; page += 1) {
    const query = `${path.includes('?') ? '&' : '?'}pageSize=${pageSize}&page=${page}`
    const body = await request<Record<Items, Item[]> & { pagination: Pagination }>('GET', `${path}${query}`)
    all.push(...body[items])
    if (page >= body.pagination.totalPages) {
      const pagination = { ...body.pagination, currentPage: 1, pageSize: all.length, totalPages: 1 }
      return { ...body, [items]: all, pagination }
    }
  }
}

/** All connections of a namespace, as one page. */
export async function allConnections({ request }: ApiClient, namespace: string): Promise<ConnectionPage> {
  const connections: ConnectionPage['connections'] = []
  let cursor: string | null = null
  do {
    const query: string = cursor === null ? '' : `?cursor=${encodeURIComponent(cursor)}`
    const page: ConnectionPage = await request('GET', `/connect/${pathSegment(namespace)}${query}`)
    connections.push(...page.connections)
    cursor = page.nextCursor
  } while (cursor !== null)
  return { connections, nextCursor: null }
}

/** In one spelling, without a slash at its end. Throws CommandError 2 for anything but an http or https URL. */
export function cleanUrl(given: string): string {
  const url = URL.parse(given)
  if (url === null || !/^https?:$/.test(url.protocol))
    throw new CommandError(`${given}: is not an http or https URL`, 2)
  if (url.search !== '' || url.hash !== '' || url.username !== '' || url.password !== '')
    throw new CommandError(`${given}: must be the base URL alone, without a query, a fragment or a password`, 2)
  return `${url.origin}${url.pathname}`.replace(/\/$/, '')
}
