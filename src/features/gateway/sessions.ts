/**
 * Sessions of upstreams in the handshake era: those that clients go on with, and those that the platform keeps for
 * clients that have none.
 *
 * A client gets the upstream's session id sealed for its session key: the connection, as it is pointed, and the token.
 * So nobody goes on with a session of another, none is pushed out, and all outlive a restart.
 */

import { LRUCache } from 'lru-cache'
import { openSealed, seal } from '../../auth/secrets.ts'
import { holdersWithSessionsMax, sessionsKeptMax, upstreamSessionIdCharsMax } from '../../limits.ts'

/** Opened by the platform. `id` is null for an upstream that keeps no sessions. */
export interface OwnSession {
  readonly id: string | null
  readonly protocolVersion: string
}

export interface Sessions {
  /** The id that the client gets for a session of the upstream's; undefined for one that is too long. */
  seal(sessionKey: string, id: string): string | undefined
  /**
   * The upstream's id. `expired`: it was sealed here, and not, or no longer, for this session key. `foreign`: it was
   * not sealed here at all.
   */
  open(sessionKey: string, given: string): { readonly id: string } | 'expired' | 'foreign'
  /**
   * The platform's own; `open` makes it where there is none. Two that ask at once wait for the same. One API key's
   * sessions push out only its own.
   */
  own(keyId: string, sessionKey: string, open: () => Promise<OwnSession>): Promise<OwnSession>
  /** It has ended. */
  forget(keyId: string, sessionKey: string, session: OwnSession): void
}

/** Tells ours from what clients make up. */
const prefix = 'postern.'

/** By session key; a promise while it is being opened. */
type OwnSessions = LRUCache<string, OwnSession | Promise<OwnSession>>

/** `key` seals. */
export function createSessions(key: Buffer): Sessions {
  const byApiKey = new LRUCache<string, OwnSessions>({ max: holdersWithSessionsMax })

  function sessionsOf(keyId: string): OwnSessions {
    const kept = byApiKey.get(keyId)
    const sessions: OwnSessions = kept ?? new LRUCache({ max: sessionsKeptMax })
    if (kept === undefined) byApiKey.set(keyId, sessions)
    return sessions
  }

  function openInto(sessions: OwnSessions, sessionKey: string, open: () => Promise<OwnSession>): Promise<OwnSession> {
    const opening = open()
    sessions.set(sessionKey, opening)
    const settle = (session?: OwnSession) => {
      if (sessions.peek(sessionKey) !== opening) return
      if (session === undefined) sessions.delete(sessionKey)
      else sessions.set(sessionKey, session)
    }
    opening.then(settle, () => settle())
    return opening
  }

  return {
    seal(sessionKey, id) {
      if (id.length > upstreamSessionIdCharsMax) return undefined
      return `${prefix}${seal(key, id, sessionKey).toString('base64url')}`
    },
    open(sessionKey, given) {
      if (!given.startsWith(prefix)) return 'foreign'
      const id = openSealed(key, Buffer.from(given.slice(prefix.length), 'base64url'), sessionKey)
      return id === undefined ? 'expired' : { id }
    },
    async own(keyId, sessionKey, open) {
      const sessions = sessionsOf(keyId)
      return sessions.get(sessionKey) ?? openInto(sessions, sessionKey, open)
    },
    forget(keyId, sessionKey, session) {
      const sessions = sessionsOf(keyId)
      // Somebody may have opened the next one already.
      if (sessions.peek(sessionKey) === session) sessions.delete(sessionKey)
    },
  }
}
