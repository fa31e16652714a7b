/**
 * Upstream sessions in the handshake era, of two kinds. A client session is opened by the client with `initialize`; a
 * platform session by the platform, for clients that send no session id.
 *
 * A client receives the upstream's session id sealed with its owner (`sessionOwnerOf` in forward.ts) as associated
 * data. So a caller cannot use another caller's session, and client sessions need no server-side state: they are never
 * evicted and survive a restart.
 */

import { LRUCache } from 'lru-cache'
import { openText, sealText } from '../../auth/secrets.ts'
import { upstreamSessionIdCharsMax } from '../../limits.ts'
import { cutText } from '../../schema/cut-text.ts'
import { isObject } from '../../schema/schema-keywords.ts'
import { bytesPerCharacter } from '../../storage/bytes.ts'
import { instructionsHash } from '../pins/pinned-definitions.ts'

/**
 * Upstream sessions kept for clients without one, for each API key. Past it: the least recently used one is evicted and
 * initialized again when needed.
 */
const sessionsKeptMax = 500
/** Bytes of memory of these, of which one takes one to ten kilobytes. Past it: as for `sessionsKeptMax`. */
const sessionsKeptBytesMax = 512 * 1024
/** API keys for which sessions are kept. Past it: those of the least recently used key are evicted. */
const holdersWithSessionsMax = 200

/** The parts of a client's `initialize` that servers hear of. */
export interface ClientGreeting {
  /** Names that session among all of its caller's; '' without one. */
  readonly sessionId: string
  readonly capabilities: object
  readonly clientInfo: object
}

/** A session that the platform opened. `id` is null if the upstream keeps no sessions. */
export interface PlatformSession {
  readonly id: string | null
  readonly protocolVersion: string
  /** Undefined if the server did not answer `initialize` with a result. */
  readonly greeting?: ServerGreeting | undefined
}

/** The parts of a server's greeting that are kept. */
export interface ServerGreeting {
  /** Names of its capabilities. */
  readonly capabilities: readonly string[]
  /** Cut to `instructionsCharsMax`. */
  readonly instructions: string | undefined
  /** The hash of all of them, for pins. */
  readonly instructionsHash: string | undefined
}

/** Characters of a server's instructions that are kept, as many as one endpoint shows in all. Past it: they are cut. */
export const instructionsCharsMax = 2048
/** Capabilities that a greeting keeps: MCP has eight. Past it: the others are left out. */
const capabilitiesMax = 32

/** Reads the result of `initialize` or `server/discover`. */
export function readGreeting({ capabilities, instructions }: Readonly<Record<string, unknown>>): ServerGreeting {
  const names = isObject(capabilities) ? Object.keys(capabilities) : []
  const kept = names.slice(0, capabilitiesMax).filter((name) => name.length <= capabilitiesMax)
  if (typeof instructions !== 'string')
    return { capabilities: kept, instructions: undefined, instructionsHash: undefined }
  return {
    capabilities: kept,
    instructions: cutText(instructions, instructionsCharsMax),
    instructionsHash: instructionsHash(instructions),
  }
}

/** Distinguishes session ids that were sealed here from ids that a client invented. */
const prefix = 'postern.'

/** Keyed by owner. The value is a promise while the session is being opened. */
type PlatformSessions = LRUCache<string, PlatformSession | Promise<PlatformSession>>

/** Bytes of memory, about. */
function sessionBytes(session: PlatformSession | Promise<PlatformSession>, owner: string): number {
  if (session instanceof Promise) return 1000 + bytesPerCharacter * owner.length
  const { id, protocolVersion, greeting } = session
  const texts = [owner, id ?? '', protocolVersion, greeting?.instructions ?? '', ...(greeting?.capabilities ?? [])]
  return texts.reduce((bytes, text) => bytes + 50 + bytesPerCharacter * text.length, 1000)
}

/** The sessions of all connections. */
export type Sessions = ReturnType<typeof createSessions>

/** `key` is the encryption key for session ids; see auth/secrets.ts. */
export function createSessions(key: Buffer) {
  const byApiKey = new LRUCache<string, PlatformSessions>({
    max: holdersWithSessionsMax,
    memoMethod: () =>
      new LRUCache({ max: sessionsKeptMax, maxSize: sessionsKeptBytesMax, sizeCalculation: sessionBytes }),
  })

  return {
    /** Seals an upstream's session id for the client. Undefined if the id exceeds `upstreamSessionIdCharsMax`. */
    seal(sessionOwner: string, id: string): string | undefined {
      if (id.length > upstreamSessionIdCharsMax) return undefined
      return `${prefix}${sealText(key, id, sessionOwner)}`
    },
    /**
     * The upstream's id in a session id that a client sent. `expired`: the id has our prefix but does not open for this
     * owner: the connection was changed, the token is another one, or the value was altered. `foreign`: the id does
     * not have our prefix.
     */
    unseal(sessionOwner: string, given: string): { readonly id: string } | 'expired' | 'foreign' {
      if (!given.startsWith(prefix)) return 'foreign'
      const id = openText(key, given.slice(prefix.length), sessionOwner)
      return id === undefined ? 'expired' : { id }
    },
    /**
     * The platform session for this owner; `open` is called if there is none. Concurrent calls share one promise, and
     * reject together if `open` rejects. At most `sessionsKeptMax` per API key, so one key's many sessions do not evict
     * another's; beyond `holdersWithSessionsMax` keys, all sessions of the key unused longest are dropped.
     */
    platform(keyId: string, sessionOwner: string, open: () => Promise<PlatformSession>) {
      const sessions = byApiKey.memo(keyId)
      const kept = sessions.get(sessionOwner)
      if (kept !== undefined) return kept
      const opening = open()
      sessions.set(sessionOwner, opening)
      // The entry may have been evicted or replaced in the meantime; then it is left alone. A failure is not cached.
      const settle = (session?: PlatformSession) => {
        if (sessions.peek(sessionOwner) !== opening) return
        if (session === undefined) sessions.delete(sessionOwner)
        else sessions.set(sessionOwner, session)
      }
      opening.then(settle, () => settle())
      return opening
    },
    /** The platform session of this owner that is open. */
    opened(keyId: string, sessionOwner: string): PlatformSession | undefined {
      const kept = byApiKey.get(keyId)?.get(sessionOwner)
      return kept instanceof Promise ? undefined : kept
    },
    /** Drops a platform session that the upstream no longer knows. */
    forget(keyId: string, sessionOwner: string, session: PlatformSession): void {
      const sessions = byApiKey.memo(keyId)
      // Another request may already have opened the next session; keep that one.
      if (sessions.peek(sessionOwner) === session) sessions.delete(sessionOwner)
    },
  }
}
