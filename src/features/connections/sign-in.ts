/** What a connection whose server wants a sign-in has to do with it when it is written (sign-in contract, 1.1). */

import type { ConnectionRef, RequestContext } from '../../auth/authorize.ts'
import { hasAuthorization } from '../../auth/sealed-headers.ts'
import type { SetupLinks } from '../../auth/setup-links.ts'
import type { Connection } from '../../model/connection.ts'
import type { StoredConnection } from '../../storage/connections.ts'
import type { UpstreamCredentials } from '../upstream-sign-in/credentials.ts'
import type { Draft } from './draft.ts'

/** Adds the links to sign in; not for a connection that sends an authorization header of its own. */
export function withLinks(
  links: SetupLinks,
  connection: Connection,
  ref: ConnectionRef,
  { headers }: Draft,
): Connection {
  if (connection.status.state !== 'auth_required' || hasAuthorization(headers)) return connection
  const url = links.urlOf(ref)
  return { ...connection, status: { state: 'auth_required', setupUrl: url, authorizationUrl: url } }
}

/** For the answer alone: who writes a connection may set it up, or let somebody else do so, without a key. */
export function withTicket(
  links: SetupLinks,
  connection: Connection,
  ref: ConnectionRef,
  { privatePart }: Draft,
): Connection {
  const { status, createdAt } = connection
  if (status.state !== 'auth_required' || status.setupUrl !== links.urlOf(ref)) return connection
  const url = links.urlWithTicket({ ref, createdAt, privatePart })
  return { ...connection, status: { state: 'auth_required', setupUrl: url, authorizationUrl: url } }
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
  return { ...draft, headers: { ...draft.headers, authorization: `Bearer ${current.accessToken}` } }
}
