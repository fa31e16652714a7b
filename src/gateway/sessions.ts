/**
 * Sessions of upstreams in the handshake era: which ones a client may go on with, and those that the platform keeps
 * for clients that have none. A session belongs to the connection and the token that it was opened with; any other
 * id that a client names goes nowhere.
 */

import { LRUCache } from 'lru-cache'
import { sessionsKeptMax } from '../limits.ts'
import type { Soon } from '../model/soon.ts'

/** Opened by the platform. `id` is null for an upstream that keeps no sessions. */
export interface KeptSession {
  readonly id: string | null
  readonly protocolVersion: string
}

export interface Sessions {
  /** The client was given this session through us. */
  add(owner: string, sessionId: string): void
  has(owner: string, sessionId: string): boolean
  /** The platform's own; `open` makes it where there is none. Two who ask at once wait for the same. */
  kept(owner: string, open: () => Promise<KeptSession>): Soon<KeptSession>
  /** It is over. */
  drop(owner: string, session: KeptSession): void
}

export function createSessions(): Sessions {
  const given = new LRUCache<string, true>({ max: sessionsKeptMax })
  /** A promise while it is being opened. */
  const kept = new LRUCache<string, Soon<KeptSession>>({ max: sessionsKeptMax })

  function opened(owner: string, open: () => Promise<KeptSession>): Promise<KeptSession> {
    const opening = open()
    kept.set(owner, opening)
    const settle = (session?: KeptSession) => {
      if (kept.peek(owner) !== opening) return
      if (session === undefined) kept.delete(owner)
      else kept.set(owner, session)
    }
    opening.then(settle, () => settle())
    return opening
  }

  return {
    add: (owner, sessionId) => void given.set(`${owner}\0${sessionId}`, true),
    has: (owner, sessionId) => given.get(`${owner}\0${sessionId}`) === true,
    kept: (owner, open) => kept.get(owner) ?? opened(owner, open),
    drop(owner, session) {
      // Somebody may have opened the next one already.
      if (kept.peek(owner) === session) kept.delete(owner)
    },
  }
}
