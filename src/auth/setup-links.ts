/**
 * The links that are given for connections which need a sign-in or input: `{base}/connect/NAMESPACE/ID/setup`. With a
 * ticket, who opens one needs no key (sign-in contract, 1.1).
 */

import { setupTicketSeconds } from '../limits.ts'
import type { ConnectionStatus } from '../model/connection.ts'
import type { ConnectionPrivate } from '../storage/connections.ts'
import type { ConnectionRef } from './authorizer.ts'
import type { Maker } from './maker.ts'
import { openText, sealText } from './secrets.ts'

/** The status with the link to set the connection up, where there is something to set up. */
export function withSetupUrl(status: ConnectionStatus, url: string): ConnectionStatus {
  if (status.state === 'input_required') return { ...status, setupUrl: url }
  return status.state === 'auth_required' ? { ...status, setupUrl: url, authorizationUrl: url } : status
}

/** A ticket is bound to this: the connection as it was made, until somebody has signed in or out. */
export interface SetupOf {
  readonly ref: ConnectionRef
  readonly createdAt: string
  readonly privatePart: Pick<ConnectionPrivate, 'setups'>
}

interface TicketText extends Maker {
  /** Unix seconds. */
  readonly expires: number
}

export interface SetupLinks {
  /** Without a ticket. */
  urlOf(ref: ConnectionRef): string
  urlWithTicket(connection: SetupOf, maker: Maker): string
  /** The maker of a ticket for this connection, which must still be good (`maker.ts`); undefined if it is none. */
  ticketMaker(ticket: string, connection: SetupOf): Maker | undefined
}

/** `signInKey`: see `Secrets`. `now`: milliseconds since 1970. */
export function createSetupLinks(baseUrl: string, signInKey: Buffer, now: () => number): SetupLinks {
  const base = baseUrl.replace(/\/$/, '')
  const urlOf = ({ namespace, connectionId }: ConnectionRef) => `${base}/connect/${namespace}/${connectionId}/setup`
  const place = ({ ref, createdAt, privatePart: { setups = 0 } }: SetupOf) =>
    `ticket ${ref.namespace}/${ref.connectionId} ${createdAt} ${setups}`
  return {
    urlOf,
    urlWithTicket(connection, maker) {
      const text: TicketText = { ...maker, expires: Math.floor(now() / 1000) + setupTicketSeconds }
      const ticket = sealText(signInKey, JSON.stringify(text), place(connection))
      return `${urlOf(connection.ref)}?ticket=${ticket}`
    },
    ticketMaker(ticket, connection) {
      const text = openText(signInKey, ticket, place(connection))
      if (text === undefined) return undefined
      const { expires, ...maker } = JSON.parse(text) as TicketText
      return expires > now() / 1000 ? maker : undefined
    },
  }
}
