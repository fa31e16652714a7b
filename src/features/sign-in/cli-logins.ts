/** Logins that a command line has begun, in the store, for five minutes. */

import { timingSafeEqual } from 'node:crypto'
import { formTokenOf } from '../../auth/browser-sessions.ts'
import type { ExpiringRecords, FoundRecord } from '../../auth/expiring-records.ts'
import { invalidRequest, notFound } from '../../errors.ts'
import { cliLoginSeconds } from '../../limits.ts'
import type { Store } from '../../storage/store.ts'

/** `address`: of the command line. `keyId`: of the user who allowed it; null if it was denied. */
export interface CliLogin {
  readonly address: string
  readonly keyId?: string | null
}

export interface CliLogins {
  /**
   * `login` is for the page, `sessionId` for the command line alone: people who see the page cannot fetch the token.
   */
  begin(address: string): Promise<{ readonly login: string; readonly sessionId: string }>
  /** A login that nobody has decided on. Throws `invalid_request`, with a text for the user. */
  undecided(login: string): Promise<FoundRecord<CliLogin>>
  /** Throws as `undecided` does if it was decided meanwhile. */
  decide(found: FoundRecord<CliLogin>, keyId: string | null): Promise<void>
  /** The login of a command line. Throws `not_found`. */
  find(sessionId: string): Promise<FoundRecord<CliLogin>>
  /** Uses a login up. Throws `not_found` if that was done. */
  take(found: FoundRecord<CliLogin>): Promise<void>
}

export interface CliLoginsOptions {
  readonly records: ExpiringRecords
  readonly store: Pick<Store, 'commit'>
  readonly signInKey: Buffer
}

const purpose = 'cli login'

export function createCliLogins({ records, store, signInKey }: CliLoginsOptions): CliLogins {
  const sessionIdOf = (login: string) => `${login}.${formTokenOf(signInKey, login, 'cli login poll')}`

  return {
    async begin(address) {
      const value: CliLogin = { address }
      const { secret, entry } = records.create(purpose, value, cliLoginSeconds)
      await store.commit({ puts: [entry], deletes: await records.expired() })
      return { login: secret, sessionId: sessionIdOf(secret) }
    },
    async undecided(login) {
      const found = await records.find<CliLogin>(purpose, login)
      if (found === undefined || found.value.keyId !== undefined) throw over()
      return found
    },
    async decide(found, keyId) {
      const checks = [{ key: found.key, value: found.bytes }]
      const puts = [records.replacing(purpose, found, { ...found.value, keyId })]
      if (!(await store.commit({ checks, puts })).ok) throw over()
    },
    async find(sessionId) {
      const [login = ''] = sessionId.split('.')
      const found = await records.find<CliLogin>(purpose, login)
      const [given, wanted] = [Buffer.from(sessionId), Buffer.from(sessionIdOf(login))]
      if (found === undefined || given.length !== wanted.length || !timingSafeEqual(given, wanted)) throw missing()
      return found
    },
    async take({ key, bytes }) {
      const { ok } = await store.commit({ checks: [{ key, value: bytes }], deletes: [key], fromReserve: 'revocation' })
      if (!ok) throw missing()
    },
  }
}

function over() {
  return invalidRequest('This login has expired, or was decided on already: run the login command again')
}

function missing() {
  return notFound('There is no such login: it has expired, or its token was fetched already')
}
