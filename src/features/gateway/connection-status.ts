/**
 * Records a connection's state as seen in its traffic, as long as the connection is the one that was called: somebody
 * may have signed in, or made it anew, before the answer came. Written in the background, only if it changed, and at
 * most once per `statusWriteIntervalMs` and connection.
 */

import { LRUCache } from 'lru-cache'
import { withSignInEnd } from '../../auth/setup-links.ts'
import type { Clock } from '../../clock.ts'
import type { ConnectionRef, ConnectionStatus } from '../../model/connection.ts'
import type { Log } from '../../ops/log.ts'
import { connectionChange, contacted, findConnection, type StoredConnection } from '../../storage/connections.ts'
import type { Store } from '../../storage/store.ts'
import { hashOf } from '../pins/pinned-definitions.ts'

/** Ours: minimum interval between two writes of a connection's status. Within it: the stored status stays as it is. */
export const statusWriteIntervalMs = 10_000

/** How often a contact is noted although it changes no status: lists of connections are made again for it. */
const contactNotedMs = 3600 * 1000

/** Connections whose last status write is cached. Past it: the status is written once more. */
const statusesKeptMax = 20_000

/** Returns at once. A failed write is logged, not thrown: the state is information, and no request depends on it. */
export type RecordStatus = (ref: ConnectionRef, called: StoredConnection, status: ConnectionStatus) => void

export function createStatusRecorder(store: Store, clock: Clock, log: Log): RecordStatus {
  /** When each connection's state was last recorded, by the monotonic clock. */
  const written = new LRUCache<string, number>({ max: statusesKeptMax })
  // If the connection was written by another request in the meantime, that write wins and this one is dropped.
  const write = async (...[ref, called, status]: Parameters<RecordStatus>) => {
    const before = await findConnection(store, ref.namespace, ref.connectionId)
    if (before === undefined || askedAs(before) !== askedAs(called) || isNoted(before, status, clock.now())) return
    const connection = { ...before.connection, status: withSignInEnd(status, before.privatePart) }
    const privatePart = contacted(before.privatePart, before.connection, connection, clock.now())
    await store.commit(connectionChange(ref, before, { connection, privatePart }))
  }
  return (ref, called, status) => {
    // Most calls change no status, and nothing is read for them.
    if (isNoted(called, status, clock.now())) return
    const name = `${ref.namespace}/${ref.connectionId}`
    const last = written.get(name)
    // Somebody must act on `auth_required`, so it is written at once.
    if (status.state !== 'auth_required' && last !== undefined && clock.monotonic() - last < statusWriteIntervalMs)
      return
    written.set(name, clock.monotonic())
    write(ref, called, status).catch((error: unknown) =>
      log.warn('the status of a connection could not be written', { error: String(error) }),
    )
  }
}

/** Whether the connection has this status, and a contact was noted lately. */
function isNoted({ connection, privatePart }: StoredConnection, status: ConnectionStatus, at: number): boolean {
  const { contactedAt = Number.NEGATIVE_INFINITY } = privatePart
  const after = withSignInEnd(status, privatePart)
  return JSON.stringify(connection.status) === JSON.stringify(after) && at - contactedAt < contactNotedMs
}

/**
 * The server that a connection asks, the headers and values that it sends, and the sign-in that it asks with. Each
 * sign-in and each sign-out adds one to `setups`; a refresh changes nothing.
 */
export function askedAs({ connection, privatePart: { headers, input, oauth, setups } }: StoredConnection): string {
  return [connection.createdAt, connection.mcpUrl, headers ?? '', input ?? '', oauth ?? '', setups ?? 0].join('\0')
}

/** Characters of what a connection asks its server with, in the name of a session. Past it: a hash of them. */
const sessionNameCharsMax = 512

/** As `askedAs`, in few characters: thousands of sessions are kept by it, and a connection may have 64 kB of headers. */
export function askedInShort(stored: StoredConnection): string {
  const asked = askedAs(stored)
  return asked.length <= sessionNameCharsMax ? asked : hashOf(asked)
}
