/** Requests of commands to a running platform, over HTTP, with the user's key or token. */

import { CommandError } from '../errors.ts'
import { readHosts } from './api-hosts.ts'

export interface ClientFlags {
  readonly url?: string
  /** The namespace of the command; the only one that the caller reaches, if it is left out. */
  readonly namespace?: string
  readonly json?: boolean
}

// biome-ignore lint/suspicious/noExplicitAny: the platform says what it is
export type Answer = any

export interface ApiClient {
  readonly url: string
  /** The body of a successful response. Throws CommandError for any other. */
  request(method: string, path: string, body?: unknown): Promise<Answer>
  /** The namespace that was named, or the only one there is. Throws CommandError. */
  namespace(): Promise<string>
}

/** A name as a segment of a path. Throws CommandError for `..` and its like, which a URL takes for another path. */
export function at(name: string): string {
  if (name === '' || name === '.' || name === '..')
    throw new CommandError(`${JSON.stringify(name)} is not a valid name`)
  return encodeURIComponent(name)
}

type Environment = Readonly<Record<string, string | undefined>>

/** `key`: in place of the one that is kept. Throws CommandError if it is not known where the platform is, or who asks. */
export function openClient({ url: given, namespace }: ClientFlags, environment: Environment, key?: string): ApiClient {
  const hosts = readHosts(environment)
  // An empty variable is as none.
  const named = given || environment['POSTERN_URL'] || hosts.current
  if (named === undefined)
    throw new CommandError('which platform? Run `postern login URL`, or set POSTERN_URL and POSTERN_TOKEN')
  const url = cleanUrl(named)
  const credential = key ?? (environment['POSTERN_TOKEN'] || hosts.keys[url])
  if (credential === undefined)
    throw new CommandError(`no key for ${url}: run \`postern login ${url}\`, or set POSTERN_TOKEN`)

  async function request(method: string, path: string, body?: unknown): Promise<Answer> {
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
    if (response.ok && answer !== undefined) return answer
    if (response.ok) throw new CommandError(`${url} does not answer as postern does: check the URL`)
    const { error = 'error', message = error } = (answer ?? {}) as { error?: string; message?: string }
    const isVariables = key === undefined && credential === environment['POSTERN_TOKEN']
    const next = isVariables
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
      const { namespaces } = await request('GET', '/namespaces?pageSize=2')
      if (namespaces.length === 1) return namespaces[0].name
      if (namespaces.length === 0)
        throw new CommandError('you reach no namespace: make one with `postern namespace add NAME`')
      throw new CommandError('you reach several namespaces: name one with -n')
    },
  }
}

/** All items of a list that is read by page numbers. */
export async function allPages({ request }: ApiClient, path: string, items: string, pageSize: number): Promise<Answer> {
  const all: Answer[] = []
  for (let page = 1; ; page += 1) {
    const answer = await request('GET', `${path}${path.includes('?') ? '&' : '?'}pageSize=${pageSize}&page=${page}`)
    all.push(...answer[items])
    if (page >= answer.pagination.totalPages) {
      return { [items]: all, pagination: { ...answer.pagination, currentPage: 1, pageSize: all.length, totalPages: 1 } }
    }
  }
}

/** All connections of a namespace. */
export async function allConnections({ request }: ApiClient, namespace: string): Promise<Answer> {
  const connections: Answer[] = []
  let cursor: string | null = null
  do {
    const query: string = cursor === null ? '' : `?cursor=${encodeURIComponent(cursor)}`
    const page: Answer = await request('GET', `/connect/${at(namespace)}${query}`)
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
