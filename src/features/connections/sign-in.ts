/** The steps of a write of a connection whose server wants a sign-in, or input (sign-in contract, 1.1, 1.10). */

import type { RequestContext } from '../../auth/authorizer.ts'
import type { Maker } from '../../auth/maker.ts'
import { hasAuthorization } from '../../auth/sealed-parts.ts'
import { type SetupLinks, withSetupUrl, withSignInEnd } from '../../auth/setup-links.ts'
import type { Connection, ConnectionRef } from '../../model/connection.ts'
import type { ConnectionPrivate, StoredConnection } from '../../storage/connections.ts'
import type { UpstreamCredentials } from '../upstream-sign-in/credentials.ts'
import type { Draft } from './draft.ts'

/**
 * Adds the link to set the connection up. Nobody is to sign in to a connection that sends an authorization header of
 * its own.
 */
export function withLinks(
  links: SetupLinks,
  connection: Connection,
  ref: ConnectionRef,
  { target }: Draft,
): Connection {
  const { status } = connection
  if (status.state === 'auth_required' && hasAuthorization(target.headers)) return connection
  return { ...connection, status: withSetupUrl(status, links.urlOf(ref)) }
}

/**
 * A server that wants more scopes than its token has is not connected, whatever it answers to a greeting. One that is
 * says until when, if its sign-in ends.
 */
export function asSignedIn(connection: Connection, { privatePart }: Draft): Connection {
  const { tokens, wantedScope } = privatePart
  if (tokens === undefined || connection.status.state !== 'connected') return connection
  const status = withSignInEnd(connection.status, privatePart)
  return { ...connection, status: wantedScope === undefined ? status : { state: 'auth_required' } }
}

/** Tickets are good until the connection is set up, also where a write has set it up. */
export function withTicketsEnded(
  privatePart: ConnectionPrivate,
  before: StoredConnection | undefined,
  { status }: Connection,
): ConnectionPrivate {
  const was = before?.connection.status.state
  const isSetUp = status.state === 'connected' && (was === 'auth_required' || was === 'input_required')
  return isSetUp ? { ...privatePart, setups: (privatePart.setups ?? 0) + 1 } : privatePart
}

/** For the answer alone: its ticket lets the writer of a connection, or somebody else, set it up without a key. */
export function withTicket(
  links: SetupLinks,
  ref: ConnectionRef,
  { connection, privatePart }: Pick<StoredConnection, 'connection' | 'privatePart'>,
  maker: Maker,
): Connection {
  const { status } = connection
  const canBeSetUp = status.state === 'auth_required' || status.state === 'input_required'
  if (!canBeSetUp || status.setupUrl !== links.urlOf(ref)) return connection
  return { ...connection, status: withSetupUrl(status, links.urlWithTicket({ ref, connection, privatePart }, maker)) }
}

/** The draft with the token of somebody who has signed in, for the probe. */
export async function signedIn(
  credentials: Pick<UpstreamCredentials, 'of'>,
  draft: Draft,
  {
    ref,
    stored,
    context,
  }: { readonly ref: ConnectionRef; readonly stored: StoredConnection; readonly context: RequestContext },
): Promise<Draft> {
  if (draft.privatePart.tokens === undefined) return draft
  const { caller: holder, request } = context
  const current = await credentials.of({ ref, stored, holder, request })
  if (current === undefined) return draft
  const { url, headers } = draft.target
  return { ...draft, target: { url, headers: { ...headers, authorization: `Bearer ${current.accessToken}` } } }
}
