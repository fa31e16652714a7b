/** The interface as the console uses it: requests with the session's cookie, and what went wrong with them. */

import { signal } from '@preact/signals'
import type { ConsoleSessionBody } from '../model/console.ts'
import { parseJson } from './json.ts'

/** The path of the base URL, without a slash at its end. */
export const base = document.documentElement.dataset['base'] ?? ''

/** Undefined before it is known; null where nobody is signed in. */
export const session = signal<ConsoleSessionBody | null | undefined>(undefined)
/** The user whose session has ended in this tab: only they get their drafts back. */
export const lastUser = signal<string | undefined>(undefined)

/** An answer that is no success. */
export class Refused extends Error {
  readonly status: number
  readonly requestId: string | undefined
  /** Where a person sets a connection up. */
  readonly setupUrl: string | undefined
  /** The path that could not be read. Undefined for a write, whose body may have secrets. */
  readonly path: string | undefined

  constructor(status: number, body: unknown, requestId: string | null, path?: string) {
    const { error, message, setupUrl } = (body ?? {}) as Record<string, string | undefined>
    super(message ?? (typeof error === 'string' ? error : `postern answered ${status}`))
    this.status = status
    this.requestId = requestId ?? undefined
    this.setupUrl = setupUrl
    this.path = path
  }
}

interface Sent {
  readonly body?: unknown
  readonly signal?: AbortSignal | undefined
}

/** The body of a successful answer. Throws Refused. */
export async function ask<T>(method: string, path: string, { body, signal: stop }: Sent = {}): Promise<T> {
  const response = await send(path, {
    method,
    headers: {
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...(method !== 'GET' && session.value && { 'x-postern-csrf': session.value.csrf }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    ...(stop && { signal: stop }),
  })
  const text = await response.text()
  const read = text === '' ? undefined : parsed(text)
  if (response.ok) return read as T
  // An MCP server that wants a sign-in is another 401.
  const { error } = (read ?? {}) as { error?: unknown }
  if (response.status === 401 && error !== 'upstream_unauthorized') {
    if (session.value) lastUser.value = session.value.userId
    session.value = null
  }
  throw new Refused(response.status, read, response.headers.get('x-request-id'), method === 'GET' ? path : undefined)
}

/** Throws Refused where postern does not answer at all. */
async function send(path: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(`${base}${path}`, init)
  } catch (error) {
    if ((error as Error).name === 'AbortError') throw error
    throw new Refused(0, { message: 'postern does not answer. The page keeps your text: try again.' }, null)
  }
}

function parsed(text: string): unknown {
  try {
    return parseJson(text)
  } catch {
    return { message: text.slice(0, 300) }
  }
}

/** Every tab of a browser has the same session: each hears when somebody signs in or out. */
const tabs = new BroadcastChannel(`postern session ${base}`)
tabs.onmessage = () => void findSession()
export const tellTabs = () => tabs.postMessage('changed')

export async function findSession(): Promise<void> {
  try {
    session.value = await ask<ConsoleSessionBody>('GET', '/console/session')
  } catch (error) {
    // Where postern does not answer, nobody knows whether it has ended.
    if (session.value === undefined || (error as Refused).status === 401) session.value = null
  }
}
