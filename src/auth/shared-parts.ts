/** The parts that features share: who asks, what they may access, and where it is kept. `app.ts` makes them. */

import type { Clock } from '../clock.ts'
import type { ClientSockets } from '../http/client-sockets.ts'
import type { Audit } from '../ops/audit-log.ts'
import type { Store } from '../storage/store.ts'
import type { Authenticator } from './authenticate.ts'
import type { Authorizer } from './authorizer.ts'
import type { BrowserSessions } from './browser-sessions.ts'
import type { ConsoleSessions } from './console-sessions.ts'
import type { Denials } from './denials.ts'
import type { Directory } from './directory.ts'
import type { ExpiringRecords } from './expiring-records.ts'
import type { SetupLinks } from './setup-links.ts'
import type { Writes } from './writes.ts'

/** A feature's own `Deps` add what it alone has. */
export interface SharedParts {
  readonly store: Store
  readonly audit: Audit
  readonly denials: Denials
  readonly directory: Directory
  readonly authenticator: Authenticator
  readonly authorizer: Authorizer
  readonly writes: Writes
  readonly records: ExpiringRecords
  readonly sessions: BrowserSessions
  /** Undefined: this server has no console. */
  readonly consoleSessions: ConsoleSessions | undefined
  readonly links: SetupLinks
  readonly sockets: ClientSockets
  readonly clock: Clock
  /** The base URL, exactly as tokens have it: their `iss` and `aud`. */
  readonly issuer: string
  /** The base URL, without a slash at its end. */
  readonly base: string
  /** See `Secrets`. */
  readonly signInKey: Buffer
  readonly headersKey: Buffer
  readonly tokenIdKey: Buffer
  /** The key that API keys are hashed with. */
  readonly pepper: Buffer
}
