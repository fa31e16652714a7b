/** Requests of commands to a running platform, over HTTP, with the user's key or token. */

import { existsSync } from 'node:fs'
import { type Static, type TSchema, Type } from '@sinclair/typebox'
import { CommandError, errorTable } from '../../errors.ts'
import { Me } from '../../model/organization.ts'
import { oneLine } from '../../ops/escape-control.ts'
import { validatorOf } from '../../schema/check.ts'
import { nullable, OptionalText, opened } from '../../schema/shapes.ts'
import { type Environment, readHosts } from './hosts.ts'

/** Ours: bytes of an answer that a command reads; the largest page has a tenth of it. Past it: the command fails. */
const clientAnswerBytesMax = 64 * 1024 * 1024
/** Ours: time for a command's request with its whole answer; a tool may take ten minutes. Past it: the command fails. */
const clientAnswerMs = 15 * 60 * 1000

export interface ClientFlags {
  readonly url?: string
  /** Without it, the only namespace that the caller has access to. */
  readonly namespace?: string
  readonly json?: boolean
}

export interface RequestOptions<S extends TSchema = TSchema> {
  /** Sent as JSON. */
  readonly body?: unknown
  /** The error's text for a 404, whose own message does not name what is missing. */
  readonly missing?: string
  /** The fields of the answer that the command reads; a later version may send more. Left out: any object will do. */
  readonly reads?: S
}

type Client = Pick<ReturnType<typeof openClient>, 'request' | 'notOfPostern'>

const Paged = Type.Object({ pagination: Type.Object({ totalPages: Type.Integer() }) })
const ErrorAnswer = Type.Object({ error: OptionalText, message: OptionalText })
/** The fields that commands read of a connection. */
export const Connection = Type.Object({
  connectionId: Type.String(),
  name: Type.String(),
  mcpUrl: nullable(Type.String()),
  mock: Type.Optional(Type.Object({ enabled: Type.Boolean() })),
  status: Type.Object({ state: Type.String(), setupUrl: OptionalText, message: OptionalText }),
})
/** Without `nextCursor` it is the last page, too. */
const ConnectionPage = Type.Object({
  connections: Type.Array(Connection),
  nextCursor: Type.Optional(nullable(Type.String())),
})

// The option for a 404 of each kind.

export function noNamespace(name: string): RequestOptions {
  return { missing: `there is no namespace ${name}, or you have no access to it: see \`postern namespace list\`` }
}

export function noServer(name: string): RequestOptions {
  return { missing: `there is no server ${name}, or you have no access to it: see \`postern server search\`` }
}

export function noConnection(namespace: string, id: string): RequestOptions {
  const what = `there is no connection ${id} in ${namespace}, or you have no access to it`
  return { missing: `${what}: see \`postern connection list -n ${namespace}\`` }
}

/** A name as one segment of a path. Throws CommandError for an empty name, `.` and `..`: a URL would drop them. */
export function pathSegment(name: string): string {
  if (name === '' || name === '.' || name === '..')
    throw new CommandError(`${JSON.stringify(name)} cannot be a name here: it is empty, \`.\` or \`..\``)
  return encodeURIComponent(name)
}

/** The parameters that have a value, with the question mark; '' without any. */
export function queryOf(parameters: Readonly<Record<string, string | undefined>>): string {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(parameters)) if (value !== undefined) query.set(name, value)
  return query.size === 0 ? '' : `?${query}`
}

/** `key`: instead of the kept one. `timeoutMs`: for a whole answer. Throws CommandError without a URL or a key. */
export function openClient(
  { url: given, namespace }: ClientFlags,
  environment: Environment,
  key?: string,
  timeoutMs = clientAnswerMs,
) {
  const hosts = readHosts(environment)
  // An empty variable counts as unset.
  const named = given || environment['POSTERN_URL'] || hosts.current
  if (named === undefined)
    throw new CommandError(
      'no base URL is set: name one with --url, run `postern login URL`, or set POSTERN_URL and POSTERN_TOKEN',
    )
  const url = cleanUrl(named)
  const credential = key ?? (environment['POSTERN_TOKEN'] || hosts.keys[url])
  if (credential === undefined)
    throw new CommandError(`no key for ${url}: run \`postern login ${url}\`, or set POSTERN_TOKEN`)

  const notOfPostern = () => new CommandError(notPostern(url))

  /** The body of a successful response. Throws CommandError for any other, and for one without what is read. */
  async function request<S extends TSchema>(
    method: string,
    path: string,
    { body, missing, reads }: RequestOptions<S> = {},
  ): Promise<Static<S>> {
    const type = body === undefined ? {} : { 'content-type': 'application/json' }
    const init = {
      method,
      headers: { authorization: `Bearer ${credential}`, ...type },
      body: JSON.stringify(body),
      // The body may hold secrets, and goes nowhere but to the platform that was named.
      redirect: 'manual' as const,
      signal: AbortSignal.timeout(timeoutMs),
    }
    const response = await fetch(`${url}${path}`, init).catch((error: NodeJS.ErrnoException) => {
      if (error.name === 'TimeoutError') throw late(url, method)
      throw new CommandError(unreachableText(url, error.code ?? error.message), 1, { code: 'unreachable' })
    })
    const { status, ok, headers } = response
    const elsewhere = status >= 300 && status < 400 ? headers.get('location') : null
    if (elsewhere !== null)
      throw new CommandError(`${url} redirects to ${oneLine(elsewhere)}: name that address with --url if you trust it`)
    const answer = await readAnswer(response, url, method)
    if (ok && validatorOf(opened(reads ?? Type.Object({}))).isValid(answer)) return answer
    if (ok) throw notOfPostern()
    // Some operations have the message alone, as `error`.
    const { error = '', message = error } = validatorOf(ErrorAnswer).isValid(answer) ? answer : {}
    const code = message === error ? codeOf(status) : error
    const text =
      message === ''
        ? foreignText(url, status)
        : textFor(code, message, missing ?? missingAt(path, environment['POSTERN_NAMESPACE']))
    throw new CommandError(oneLine(text), 1, { code, status })
  }

  function textFor(code: string, message: string, missing: string | undefined): string {
    // Another message names what is missing itself.
    if (code === 'not_found' && missing !== undefined && message.endsWith('not found')) return missing
    // An upstream's 401 has nothing to do with the key.
    if (code !== 'unauthorized') return message
    const expiry = expiryOf(credential ?? '')
    if (expiry !== undefined && expiry <= Date.now())
      return `the token expired at ${new Date(expiry).toISOString()}: mint another with \`postern token mint\``
    const isFromEnvironment = key === undefined && credential === environment['POSTERN_TOKEN']
    return isFromEnvironment
      ? `${message}; set POSTERN_TOKEN to a valid one, or unset it`
      : `${message}; run \`postern login ${url}\` with a valid key`
  }

  return {
    url,
    request,
    notOfPostern,
    /** The namespace that was named, or the only one that the caller has access to. Throws CommandError. */
    async namespace(): Promise<string> {
      if (namespace !== undefined && namespace !== '') return namespace
      // Not from `GET /namespaces`, which a token for connections may not read.
      const { namespaces, more } = await request('GET', '/me', { reads: Me })
      const [only, ...others] = namespaces.map(({ name }) => name)
      if (only === undefined)
        throw new CommandError('you have access to no namespace: create one with `postern namespace add NAME`')
      if (others.length === 0) return only
      const names = [only, ...others]
      const some = names.length > namesShown || more ? `${names.slice(0, namesShown).join(', ')}, …` : names.join(', ')
      throw new CommandError(`you have access to several namespaces (${some}): choose one with -n`)
    },
  }
}

const namesShown = 5

export const notPostern = (url: string) => `${url} does not answer as postern does: check the URL`

function late(url: string, method: string): CommandError {
  const text =
    method === 'GET'
      ? 'did not answer in time: repeat the command'
      : 'did not answer in time, and may have done what was asked: check whether it has before you repeat it'
  return new CommandError(`${url} ${text}`, 1, { code: 'unreachable' })
}

/** The JSON of the answer; undefined for anything else. Throws CommandError for too much of it, or too late. */
async function readAnswer({ body }: Response, url: string, method: string): Promise<unknown> {
  const chunks: Uint8Array[] = []
  let length = 0
  try {
    for await (const chunk of body ?? []) {
      length += chunk.length
      if (length > clientAnswerBytesMax) break
      chunks.push(chunk)
    }
    if (length <= clientAnswerBytesMax) return JSON.parse(Buffer.concat(chunks).toString())
  } catch (error) {
    if ((error as Error).name === 'TimeoutError') throw late(url, method)
    return undefined
  }
  throw new CommandError(`${url} answers with more than ${clientAnswerBytesMax / 2 ** 20} MB: check the URL`)
}

/** The code of a status, for operations whose responses have the message alone. Other responses have it in `error`. */
function codeOf(status: number): string {
  const found = Object.entries(errorTable).find(([, error]) => error.status === status && !('outsideRpc' in error))
  return found?.[0] ?? 'error'
}

/** When a service token expires, in milliseconds since 1970; undefined for any other credential. */
function expiryOf(credential: string): number | undefined {
  const [, claims, signature] = credential.split('.')
  if (claims === undefined || signature === undefined) return undefined
  try {
    const { exp } = JSON.parse(Buffer.from(claims, 'base64url').toString()) as { exp?: unknown }
    return typeof exp === 'number' ? exp * 1000 : undefined
  } catch {
    return undefined
  }
}

/** All items of a list that is read by page numbers, as one page: `name` is the field of the list in each page. */
export async function allPages<Items extends string, Item extends TSchema>(
  { request }: Client,
  path: string,
  [items, item]: readonly [name: Items, shape: Item],
  pageSize: number,
) {
  const reads = Type.Object({ [items]: Type.Array(item), ...Paged.properties })
  const all: Static<Item>[] = []
  for (let page = 1; ; page += 1) {
    const query = `${path.includes('?') ? '&' : '?'}pageSize=${pageSize}&page=${page}`
    const body = await request('GET', `${path}${query}`, { reads })
    const { pagination, [items]: found } = body as Record<Items, Static<Item>[]> & Static<typeof Paged>
    for (const one of found) all.push(one)
    // A page past the end is empty.
    if (page >= pagination.totalPages || found.length === 0) {
      const onePage = { ...pagination, currentPage: 1, pageSize: all.length, totalPages: 1 }
      return { ...body, [items]: all, pagination: onePage } as Record<Items, Static<Item>[]>
    }
  }
}

/** All connections of a namespace that have this metadata, as one page. */
export async function allConnections(
  client: Client,
  namespace: string,
  metadata: Readonly<Record<string, string>> = {},
) {
  const connections: Static<typeof Connection>[] = []
  const filter = Object.fromEntries(Object.entries(metadata).map(([key, value]) => [`metadata.${key}`, value]))
  const path = `/connect/${pathSegment(namespace)}`
  const pages = pagesByCursor(client, (cursor) =>
    client.request('GET', `${path}${queryOf({ ...filter, cursor })}`, { reads: ConnectionPage }),
  )
  for await (const page of pages) for (const one of page.connections) connections.push(one)
  return { connections, nextCursor: null }
}

/** The pages of a list that is read by a cursor, in their order. Throws CommandError for a list that has no end. */
export async function* pagesByCursor<Page extends { readonly nextCursor?: string | null | undefined }>(
  { notOfPostern }: Client,
  read: (cursor: string | undefined) => Promise<Page>,
) {
  let cursor: string | undefined
  for (;;) {
    const page = await read(cursor)
    yield page
    if (typeof page.nextCursor !== 'string') return
    // The cursor of this page would read it again, and so on without end.
    if (page.nextCursor === cursor) throw notOfPostern()
    cursor = page.nextCursor
  }
}

/** The words for a 404, where a command has none: it may be the namespace or the organization that is misspelt. */
function missingAt(path: string, ofEnvironment: string | undefined): string | undefined {
  const [, place, segment = ''] = /^\/(connect|organizations)\/([^/?]+)/.exec(path) ?? []
  if (place === undefined) return undefined
  const name = decodeURIComponent(segment)
  const [what, list] = place === 'connect' ? ['namespace', 'namespace list'] : ['organization', 'org list']
  const found = `or it does not have what you named, or you have no access: see \`postern ${list}\``
  const from = place === 'connect' && name === ofEnvironment ? ` (POSTERN_NAMESPACE is ${name})` : ''
  return `there is no ${what} ${name}, ${found}${from}`
}

/** `reason`: the code of the failure, or its words. */
export function unreachableText(url: string, reason: string): string {
  if (reason === 'ERR_TLS_CERT_ALTNAME_INVALID')
    return `the certificate of ${url} is for another name (${reason}): check the URL`
  if (reason === 'CERT_HAS_EXPIRED') return `the certificate of ${url} has expired (${reason})`
  if (/CERT|SIGNATURE|ISSUER/.test(reason)) {
    const file = process.env['SSL_CERT_FILE']
    const isMissing = Boolean(file) && !existsSync(file as string)
    const way = isMissing
      ? `SSL_CERT_FILE names ${file}, which is not there`
      : 'name the file of its authority with SSL_CERT_FILE'
    return `the certificate of ${url} is not trusted here (${reason}): ${way}`
  }
  if (reason === 'ENOTFOUND' || reason === 'EAI_AGAIN')
    return `cannot reach ${url} (${reason}): the name has no address here: check the URL, or write the name into /etc/hosts`
  if (reason === 'EPROTO')
    return `cannot reach ${url} (${reason}): there is no TLS, or the proxy there has no certificate for this name`
  return `cannot reach ${url} (${reason}): does \`postern serve\` run there?`
}

/** For an answer without the words of postern. */
function foreignText(url: string, status: number): string {
  if (status >= 502 && status <= 504)
    return `${url} answered ${status}: a proxy is there, and postern behind it does not answer`
  return `${url} does not answer as postern does (status ${status}): check the URL`
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
