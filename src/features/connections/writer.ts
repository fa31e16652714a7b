/**
 * Writes connections: checks the draft, wants the server probed (`probing.ts`) and commits the record. A probe can take
 * seconds, so the request is authorized again before the commit; a credential that was revoked in the meantime writes
 * nothing. Each write is one decision, which may have to be made again.
 */

import { auditedCaller } from '../../auth/authenticate.ts'
import { type RequestContext, sees } from '../../auth/authorizer.ts'
import { makerOf } from '../../auth/maker.ts'
import { hasAuthorization } from '../../auth/sealed-parts.ts'
import { type SetupLinks, withSetupUrl, withSignInEnd } from '../../auth/setup-links.ts'
import type { SharedParts } from '../../auth/shared-parts.ts'
import { namespaceFull } from '../../errors.ts'
import { allowanceOf } from '../../fairness/allowance.ts'
import type { Connection, ConnectionRef, ConnectionStatus } from '../../model/connection.ts'
import {
  type ConnectionPrivate,
  connectionBytes,
  connectionChange,
  contacted,
  type StoredConnection,
} from '../../storage/connections.ts'
import { keyOf } from '../../storage/keys.ts'
import type { Usage } from '../../storage/usage.ts'
import type { Upstream } from '../../upstream/upstream.ts'
import { configOf } from '../upstream-sign-in/input.ts'
import type { UpstreamCredentials } from '../upstream-sign-in/token-refresh.ts'
import { type AskedWrite, type Draft, draftChange, draftNew, requireWritable } from './draft.ts'
import type { Probing } from './probing.ts'

/** Milliseconds that a megabyte of a connection takes to be written, with what that leaves behind to be collected. */
const writeMsPerMegabyte = 40

export interface WriterDeps extends SharedParts {
  readonly upstream: Upstream
  readonly credentials: Pick<UpstreamCredentials, 'of' | 'revoke'>
  /** The most that a namespace may hold. */
  readonly quota: Usage
}

/**
 * Resolves with the new connection as JSON once it is durable, or 'again' if the id is taken, or the server must be
 * asked first. Throws 400, 403, and 401 or 404 if the caller has lost its access during the probe.
 */
export async function createOne(deps: WriterDeps, asked: AskedWrite, probing: Probing): Promise<Uint8Array | 'again'> {
  const draft = await draftWritable(deps, asked)
  const connection = probing.probed(draft)
  if (connection === undefined) return 'again'
  return commit(deps, asked, { ...draft, connection, hasAsked: probing.hasAsked })
}

/** Like `createOne`; 'again' also if `before` was replaced. Throws 404, 403, 400, and 409 for another `mcpUrl`. */
export async function replaceOne(
  deps: WriterDeps,
  asked: AskedWrite,
  probing: Probing,
  before: StoredConnection,
): Promise<Uint8Array | 'again'> {
  const { authorizer } = deps
  const { write, ref, context } = asked
  // An id that the caller does not see must behave like a free one, so the checks of `createOne` run first and can
  // throw 400 or 403; the 404 follows from `authorizer.requireAccess`.
  if (!sees(context, ref, before)) await draftWritable(deps, asked)
  await authorizer.requireAccess(context, { ...ref, stored: before }, 'write')
  // With other headers, or another query in the URL, the server may respond differently.
  const isMoved = write.mcpUrl !== undefined && write.mcpUrl !== before.connection.mcpUrl
  const needsProbe = write.headers !== undefined || write.oauth !== undefined || isMoved
  const fields = needsProbe ? (await configOf(context.request, context.directory, before)).fields : []
  const draft = draftChange(deps, asked, before, fields)
  const { status, serverInfo } = before.connection
  const unchanged: Connection = { ...draft.connection, status, ...(serverInfo && { serverInfo }) }
  requireWritable(deps, context, ref, unchanged)
  const connection = needsProbe ? probing.probed(draft, () => signedIn(deps, asked, before, draft)) : unchanged
  if (connection === undefined) return 'again'
  return commit(deps, asked, { ...draft, connection, hasAsked: probing.hasAsked }, before)
}

/** False if `before` is no longer the stored record. */
export async function deleteOne(
  deps: WriterDeps,
  ref: ConnectionRef,
  before: StoredConnection,
  context: RequestContext,
): Promise<boolean> {
  const change = connectionChange(ref, before, undefined)
  if (!(await deps.store.commit(change)).ok) return false
  await deps.audit.recordDone('connection.deleted', { ...auditedCaller(context.caller), ...ref })
  await deps.credentials.revoke(ref, before, 'the connection was deleted')
  return true
}

/** A new connection that the caller may write, before its server is contacted. Throws 400, 403. */
async function draftWritable(deps: WriterDeps, asked: AskedWrite): Promise<Draft> {
  const draft = await draftNew(deps, asked, new Date(deps.clock.now()))
  requireWritable(deps, asked.context, asked.ref, { ...draft.connection, status: { state: 'connected' } })
  return draft
}

/** A draft with the status of its server, and whether that was asked for it. */
type Probed = Draft & { readonly connection: Connection; readonly hasAsked: boolean }

/** Authorizes again, then commits and audits. `before` is undefined for a new connection. Throws 401, 404, 403. */
async function commit(
  deps: WriterDeps,
  { ref, context: { request } }: AskedWrite,
  probed: Probed,
  before?: StoredConnection,
): Promise<Uint8Array | 'again'> {
  const { authorizer, denials, store, links, audit, clock } = deps
  const connection = { ...probed.connection, status: statusToWrite(probed, links.urlOf(ref)) }
  // Read before the namespace is: if that is deleted meanwhile, the commit conflicts.
  const key = keyOf('endedNamespace', ref.namespace)
  const ended = { key, value: (await store.get(key)) ?? null }
  const context = await authorizer.authenticate(request, true)
  await authorizer.requireNamespace(context, ref.namespace, 'write')
  requireWritable(deps, context, ref, connection)
  const kept = withTicketsEnded(probed.privatePart, before, connection)
  const privatePart = probed.hasAsked ? contacted(kept, before?.connection, connection, clock.now()) : kept
  const after = { connection, privatePart }
  const change = connectionChange(ref, before, after, deps.quota)
  const written = connectionBytes(await withTicket(links, ref, { ...probed, connection }, context))
  allowanceOf(request).spend((written.length / 2 ** 20) * writeMsPerMegabyte)
  const committed = await store.commit({ ...change, checks: [...(change.checks ?? []), ended] })
  if (!committed.ok && committed.full.length > 0) {
    denials.recordWriteRefusal(request, context.caller, ref.namespace, 'namespace_full')
    throw namespaceFull(ref.namespace)
  }
  if (!committed.ok) return 'again'
  const event = before === undefined ? 'connection.created' : 'connection.changed'
  await audit.recordDone(event, { ...auditedCaller(context.caller), ...ref })
  // Another client or none: the tokens of the former one are worth nothing any more.
  if (before?.privatePart.tokens !== undefined && probed.privatePart.tokens === undefined) {
    await deps.credentials.revoke(ref, before, 'its client was changed')
  }
  return written
}

/**
 * Contacts the server of a connection that the caller may call, and writes its status: of all that a connection has,
 * nothing else. Resolves with it, or 'again' as `replaceOne`. Throws 401, 404 and 403 if the caller has lost the right.
 */
export async function testOne(
  deps: WriterDeps,
  { ref, context }: Pick<AskedWrite, 'ref' | 'context'>,
  probing: Probing,
  before: StoredConnection,
): Promise<StoredConnection | 'again'> {
  const { authorizer, store, links } = deps
  const asked = { write: {}, ref, context }
  const { fields } = await configOf(context.request, context.directory, before)
  const draft = draftChange(deps, asked, before, fields)
  const probed = probing.probed(draft, () => signedIn(deps, asked, before, draft))
  if (probed === undefined) return 'again'
  if (!probing.hasAsked) return before
  const status = statusToWrite({ ...draft, connection: probed }, links.urlOf(ref))
  const connection: Connection = {
    ...before.connection,
    status,
    ...(probed.serverInfo && { serverInfo: probed.serverInfo }),
  }
  const after = {
    connection,
    privatePart: contacted(before.privatePart, before.connection, connection, deps.clock.now()),
  }
  const now = await authorizer.authenticate(context.request, true)
  await authorizer.requireConnection(now, 'execute')
  const committed = await store.commit(connectionChange(ref, before, after))
  return committed.ok ? { ...before, ...after } : 'again'
}

/**
 * The status to write. A server that wants more scopes than its token has is not connected, whatever it answers to a
 * greeting; one that is says until when, if its sign-in ends. Where there is something to set up, a link leads there;
 * but nobody is to sign in to a connection that sends an authorization header of its own.
 */
function statusToWrite(
  { connection, target, privatePart }: Omit<Probed, 'hasAsked'>,
  setupUrl: string,
): ConnectionStatus {
  const isSignedIn = privatePart.tokens !== undefined && connection.status.state === 'connected'
  const isScopeWanted = isSignedIn && privatePart.wantedScope !== undefined
  const status: ConnectionStatus = isScopeWanted ? { state: 'auth_required' } : connection.status
  if (status.state === 'auth_required' && hasAuthorization(target.headers)) return status
  return withSetupUrl(isSignedIn ? withSignInEnd(status, privatePart) : status, setupUrl)
}

/** Tickets are good until the connection is set up, also where a write has set it up. */
function withTicketsEnded(
  privatePart: ConnectionPrivate,
  before: StoredConnection | undefined,
  { status }: Connection,
): ConnectionPrivate {
  const was = before?.connection.status.state
  const isSetUp = status.state === 'connected' && (was === 'auth_required' || was === 'input_required')
  return isSetUp ? { ...privatePart, setups: (privatePart.setups ?? 0) + 1 } : privatePart
}

/** For the answer alone: its ticket lets the writer of a connection, or somebody else, set it up without a key. */
async function withTicket(
  links: SetupLinks,
  ref: ConnectionRef,
  { connection, privatePart }: Pick<StoredConnection, 'connection' | 'privatePart'>,
  context: RequestContext,
): Promise<Connection> {
  const { status } = connection
  const canBeSetUp = status.state === 'auth_required' || status.state === 'input_required'
  if (!canBeSetUp || status.setupUrl !== links.urlOf(ref)) return connection
  const url = links.urlWithTicket({ ref, connection, privatePart }, await makerOf(context, ref.namespace))
  return { ...connection, status: withSetupUrl(status, url) }
}

/** The draft with the token of somebody who has signed in, for the probe. */
async function signedIn(
  { credentials }: WriterDeps,
  { ref, context: { request } }: AskedWrite,
  stored: StoredConnection,
  draft: Draft,
): Promise<Draft> {
  if (draft.privatePart.tokens === undefined) return draft
  const current = await credentials.of({ ref, stored, request })
  if (current === undefined) return draft
  const { url, headers } = draft.target
  return { ...draft, target: { url, headers: { ...headers, authorization: `Bearer ${current.accessToken}` } } }
}
