/**
 * Sessions of upstreams in the handshake era: those that clients go on with, and those that the platform keeps for
 * clients that have none.
 *
 * A client is given the upstream's session id sealed for its owner: the connection, as it is pointed, and the token. So
 * nobody goes on with a session of another, none is pushed out, and all outlive a restart.
 */

import { LRUCache } from 'lru-cache'
import { openSealed, seal } from '../../auth/secrets.ts'
import { holdersWithSessionsMax, sessionsKeptMax, upstreamSessionIdCharsMax } from '../../limits.ts'

/** Opened by the platform. `id` is null for an upstream that keeps no sessions. */
export interface KeptSession {
  readonly id: string | null
  readonly protocolVersion: string
}

export interface Sessions {
  /** What the client gets for a session of the upstream's; undefined for an id that is too long. */
  sealed(owner: string, id: string): string | undefined
  /**
   * The upstream's id. `over`: it is of ours, and not, or no longer, this owner's. `foreign`: the client's own idea.
   */
  open(owner: string, given: string): { readonly id: string } | 'over' | 'foreign'
  /**
   * The platform's own; `open` makes it where there is none. Two that ask at once wait for the same. One API key's push
   * out no others but its own.
   */
  kept(keyId: string, owner: string, open: () => Promise<KeptSession>): Promise<KeptSession>
  /** It is over. */
  drop(keyId: string, owner: string, session: KeptSession): void
}

/** Tells ours from what clients make up. */
const prefix = 'postern.'

/** `key` seals. */
export function createSessions(key: Buffer): Sessions {
  /** By API key, and then by owner; a promise while it is being opened. */
  const kept = new LRUCache<string, LRUCache<string, KeptSession | Promise<KeptSession>>>({
    max: holdersWithSessionsMax,
  })

  function of(keyId: string): LRUCache<string, KeptSession | Promise<KeptSession>> {
    const known = kept.get(keyId)
    const sessions = known ?? new LRUCache<string, KeptSession | Promise<KeptSession>>({ max: sessionsKeptMax })
    if (known === undefined) kept.set(keyId, sessions)
    return sessions
  }

  function opened(
    sessions: LRUCache<string, KeptSession | Promise<KeptSession>>,
    owner: string,
    open: () => Promise<KeptSession>,
  ): Promise<KeptSession> {
    const opening = open()
    sessions.set(owner, opening)
    const settle = (session?: KeptSession) => {
      if (sessions.peek(owner) !== opening) return
      if (session === undefined) sessions.delete(owner)
      else sessions.set(owner, session)
    }
    opening.then(settle, () => settle())
    return opening
  }

  return {
    sealed(owner, id) {
      if (id.length > upstreamSessionIdCharsMax) return undefined
      return `${prefix}${seal(key, id, owner).toString('base64url')}`
    },
    open(owner, given) {
      if (!given.startsWith(prefix)) return 'foreign'
      const id = openSealed(key, Buffer.from(given.slice(prefix.length), 'base64url'), owner)
      return id === undefined ? 'over' : { id }
    },
    async kept(keyId, owner, open) {
      const sessions = of(keyId)
      return sessions.get(owner) ?? opened(sessions, owner, open)
    },
    drop(keyId, owner, session) {
      const sessions = of(keyId)
      // Somebody may have opened the next one already.
      if (sessions.peek(owner) === session) sessions.delete(owner)
    },
  }
}
