/** Links for connections that need a sign-in or input. With a ticket, no key is needed (contract, 14.1). */

import { type Clock, secondsOf } from '../clock.ts'
import { setupTicketSeconds } from '../limits.ts'
import type { Connection, ConnectionRef, ConnectionStatus } from '../model/connection.ts'
import type { ConnectionPrivate } from '../storage/connections.ts'
import type { Maker } from './maker.ts'
import { openText, sealText } from './secrets.ts'

/** The status with the link to set the connection up, where there is something to set up. */
export function withSetupUrl(status: ConnectionStatus, url: string): ConnectionStatus {
  if (status.state === 'input_required') return { ...status, setupUrl: url }
  return status.state === 'auth_required' ? { ...status, setupUrl: url, authorizationUrl: url } : status
}

/** The status with the end of the sign-in, where that is known because nothing can renew it. */
export function withSignInEnd(
  status: ConnectionStatus,
  { signedInUntil }: Pick<ConnectionPrivate, 'signedInUntil'>,
): ConnectionStatus {
  return status.state === 'connected' && signedInUntil !== undefined ? { state: 'connected', signedInUntil } : status
}

/** The connection that somebody sets up. */
export interface SetupOf {
  readonly ref: ConnectionRef
  readonly connection: Pick<Connection, 'createdAt' | 'metadata' | 'mcpUrl'>
  readonly privatePart: Pick<ConnectionPrivate, 'setups'>
}

/**
 * A ticket, and a sign-in that has begun, are bound to this text: the connection as it was made, until somebody has
 * signed in or out, or has changed its URL, to which tokens and values are sent, or the metadata, by which a policy may
 * show it to its maker no more.
 */
export function setupStateOf({ ref, connection, privatePart: { setups = 0 } }: SetupOf): string {
  const { createdAt, metadata, mcpUrl } = connection
  const rest = Bun.SHA256.hash(JSON.stringify([metadata, mcpUrl]), 'base64url')
  return `${ref.namespace}/${ref.connectionId} ${createdAt} ${setups} ${rest}`
}

interface Ticket {
  readonly maker: Maker
  /** The connection as it was then (`setupStateOf`). */
  readonly state: string
  /** Unix seconds. */
  readonly expires: number
}

export type SetupLinks = ReturnType<typeof createSetupLinks>

/** `base`: the base URL without a trailing slash. `signInKey`: see `Secrets`. */
export function createSetupLinks(base: string, signInKey: Buffer, clock: Clock) {
  const urlOf = ({ namespace, connectionId }: ConnectionRef) => `${base}/connect/${namespace}/${connectionId}/setup`
  const place = ({ namespace, connectionId }: ConnectionRef) => `ticket ${namespace}/${connectionId}`
  return {
    /** Without a ticket. */
    urlOf,
    urlWithTicket(connection: SetupOf, maker: Maker): string {
      const ticket: Ticket = { maker, state: setupStateOf(connection), expires: secondsOf(clock) + setupTicketSeconds }
      const sealed = sealText(signInKey, JSON.stringify(ticket), place(connection.ref))
      return `${urlOf(connection.ref)}?ticket=${sealed}`
    },
    /**
     * A ticket for a connection of this name; undefined if it is none. Its maker must still be good (`maker.ts`), and
     * the connection as it was: a stranger's invented one costs nobody the reading of that.
     */
    openTicket(sealed: string, ref: ConnectionRef): Ticket | undefined {
      const text = openText(signInKey, sealed, place(ref))
      const ticket = text === undefined ? undefined : (JSON.parse(text) as Ticket)
      return ticket !== undefined && ticket.expires > clock.now() / 1000 ? ticket : undefined
    },
  }
}
