/**
 * The ids of messages between clients and servers (contract, 20.8). Servers see ids of the platform's own, so that two
 * clients with one token never meet; clients see the ids of servers' requests sealed, so that nobody guesses one.
 */

import { randomBytes } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { AuthorizedConnection } from '../../auth/authorizer.ts'
import { openText, sealText } from '../../auth/secrets.ts'
import type { RpcId } from '../../errors.ts'
import type { ConnectionRef } from '../../model/connection.ts'

/** Calls whose ids are remembered, so that a client can cancel them. Past it: the oldest cannot be cancelled. */
const callsKnownMax = 20_000
/** Ids of servers' requests that were answered. Past it: the oldest could be answered again. */
const answeredKnownMax = 20_000

/** A call of a client that a server has. */
interface SentCall {
  /** As it was when the call was sent. */
  readonly connection: AuthorizedConnection
  /** The id under which the server has it. */
  readonly id: string
}

/** A request of a server that a client has. */
interface AskedClient {
  readonly ref: ConnectionRef
  /** A hash of how the server was asked (`askedAs`): another one may have the connection's name when a reply comes. */
  readonly server: string
  /** The JSON of the server's own id. */
  readonly rawId: string
  /** The server's session in which it asks. */
  readonly sessionId?: string | undefined
}

export function createUnderWay(key: Buffer) {
  // Not an LRUCache: one that becomes empty writes over its whole room, and that after nearly every call.
  const calls = new Map<string, SentCall>()
  const answered = new LRUCache<string, true>({ max: answeredKnownMax })
  // Of this process alone, and never given twice.
  const beginning = randomBytes(9).toString('base64url')
  let count = 0
  const nameOf = (owner: string, id: RpcId) => `${owner}\0${JSON.stringify(id)}`

  return {
    /** A new id for a client's call. `owner`: the client's session, or else its caller. */
    send(owner: string, id: RpcId, connection: AuthorizedConnection): string {
      count += 1
      const own = `${beginning}.${count.toString(36)}`
      if (id === null) return own
      calls.set(nameOf(owner, id), { connection, id: own })
      // A Map has its oldest key first.
      if (calls.size > callsKnownMax) calls.delete(calls.keys().next().value as string)
      return own
    },
    /** The call that a client cancels; undefined if no server has it. */
    sent: (owner: string, id: RpcId): SentCall | undefined => calls.get(nameOf(owner, id)),
    /** The call is over. `own`: its new id, as the client may have begun another one under the same id. */
    end(owner: string, id: RpcId, own: string): void {
      const name = nameOf(owner, id)
      if (calls.get(name)?.id === own) calls.delete(name)
    },
    /** The id under which a client sees a server's request. */
    ask: (owner: string, asked: AskedClient): string => sealText(key, JSON.stringify(asked), `asked\0${owner}`),
    /** The request that a client replies to, once; undefined for every other id. */
    asked(owner: string, given: RpcId): AskedClient | undefined {
      if (typeof given !== 'string') return undefined
      const hash = Bun.SHA256.hash(given, 'base64')
      if (answered.has(hash)) return undefined
      const text = openText(key, given, `asked\0${owner}`)
      if (text === undefined) return undefined
      answered.set(hash, true)
      return JSON.parse(text) as AskedClient
    },
  }
}
