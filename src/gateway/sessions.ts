/**
 * Sessions of upstreams in the handshake era: which ones a client may go on with, and those that the platform keeps
 * for clients that have none. A session belongs to the connection and the token that it was opened with; any other
 * id that a client names goes nowhere.
 */

import { LRUCache } from 'lru-cache'
import { sessionsKeptMax } from '../limits.ts'

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
  kept(owner: string, open: () => Promise<KeptSession>): Promise<KeptSession>
  /** It is over. */
  drop(owner: string, session: KeptSession): void
}

export function createSessions(): Sessions {
  const given = new LRUCache<string, true>({ max: sessionsKeptMax })
  const kept = new LRUCache<string, Promise<KeptSession>>({ max: sessionsKeptMax })
  const settled = new WeakMap<Promise<KeptSession>, KeptSession>()
  async function opened(owner: string, opening: Promise<KeptSession>): Promise<KeptSession> {
    kept.set(owner, opening)
    try {
      const session = await opening
      settled.set(opening, session)
      return session
    } catch (error) {
      if (kept.peek(owner) === opening) kept.delete(owner)
      throw error
    }
  }

  return {
    add: (owner, sessionId) => void given.set(`${owner}\0${sessionId}`, true),
    has: (owner, sessionId) => given.get(`${owner}\0${sessionId}`) === true,
    kept: (owner, open) => kept.get(owner) ?? opened(owner, open()),
    drop(owner, session) {
      const current = kept.peek(owner)
      // Somebody may have opened the next one already.
      if (current !== undefined && settled.get(current) === session) kept.delete(owner)
    },
  }
}
