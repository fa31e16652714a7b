/**
 * Writes connections: checks the draft, probes the server and commits the record. A probe can take seconds, so the
 * request is authorized again before the commit; a credential that was revoked in the meantime writes nothing.
 */

import { auditedCaller } from '../../auth/audited-caller.ts'
import { type Authorizer, type ConnectionRef, type RequestContext, sees } from '../../auth/authorize.ts'
import type { Denials } from '../../auth/denials.ts'
import type { SetupLinks } from '../../auth/setup-links.ts'
import { invalidRequest, namespaceFull } from '../../errors.ts'
import type { Connection, ConnectionWrite } from '../../model/connection.ts'
import type { Audit } from '../../ops/audit-log.ts'
import { connectionBytes, connectionChange, type StoredConnection } from '../../storage/connections.ts'
import { endedKey } from '../../storage/keys.ts'
import type { Store } from '../../storage/store.ts'
import type { Usage } from '../../storage/usage.ts'
import { probeServer } from '../../upstream/probe.ts'
import { type Upstream, UpstreamError } from '../../upstream/upstream.ts'
import type { UpstreamCredentials } from '../upstream-sign-in/credentials.ts'
import { configOf } from '../upstream-sign-in/input.ts'
import { type Draft, draftChange, draftNew, requireWritable } from './draft.ts'
import { signedIn, wantingScopes, withLinks, withTicket, withTicketsEnded } from './sign-in.ts'

export interface ConnectionWriter {
  /**
   * Resolves with the new connection as JSON once it is durable, or 'conflict' if the id is taken. Throws 400, 403, and
   * 401 or 404 if the caller has lost its access during the probe.
   */
  create(write: ConnectionWrite, ref: ConnectionRef, context: RequestContext): Promise<Uint8Array | 'conflict'>
  /**
   * Like `create`; 'conflict' if `before` is no longer the stored record. Throws 404 if the caller does not see the
   * connection, 403, 400, and 409 for another `mcpUrl`.
   */
  replace(
    write: ConnectionWrite,
    ref: ConnectionRef,
    before: StoredConnection,
    context: RequestContext,
  ): Promise<Uint8Array | 'conflict'>
  /** False if `before` is no longer the stored record. */
  delete(ref: ConnectionRef, before: StoredConnection, context: RequestContext): Promise<boolean>
}

export interface WriterDeps {
  readonly authorizer: Authorizer
  readonly denials: Denials
  readonly audit: Audit
  readonly store: Store
  readonly upstream: Upstream
  readonly headersKey: Buffer
  readonly signInKey: Buffer
  /** Where a person signs in to a connection’s server. */
  readonly links: SetupLinks
  readonly credentials: Pick<UpstreamCredentials, 'of' | 'revoke'>
  /** The most that a namespace may hold. */
  readonly quota: Usage
  /** Milliseconds since 1970. */
  readonly now: () => number
}

/** `before` is undefined for a new connection. */
interface CommitOptions {
  readonly event: 'connection.created' | 'connection.changed'
  readonly ref: ConnectionRef
  readonly draft: Draft
  readonly before: StoredConnection | undefined
}

export function createConnectionWriter(deps: WriterDeps): ConnectionWriter {
  const { authorizer, denials, audit, store, headersKey, signInKey, links } = deps

  /** A new connection that the caller may write, before its server is contacted. Throws 400, 403. */
  async function draftWritable(write: ConnectionWrite, ref: ConnectionRef, context: RequestContext): Promise<Draft> {
    const draft = await draftNew(write, { context, ref, headersKey, signInKey }, new Date(deps.now()))
    requireWritable(context, ref, { ...draft.connection, status: { state: 'connected' } })
    return draft
  }

  /** Authorizes again, then commits and audits. Throws 401, 404, 403. */
  async function commit(
    probed: Connection,
    { event, ref, draft, before }: CommitOptions,
    { request }: RequestContext,
  ): Promise<Uint8Array | 'conflict'> {
    const connection = withLinks(links, wantingScopes(probed, draft), ref, draft)
    // Read before the namespace is: if that is deleted meanwhile, the commit conflicts.
    const ended = { key: endedKey(ref.namespace), value: (await store.get(endedKey(ref.namespace))) ?? null }
    const context = await authorizer.authenticate(request)
    await authorizer.requireNamespace(context, ref.namespace, 'write')
    requireWritable(context, ref, connection)
    const after = { connection, privatePart: withTicketsEnded(draft.privatePart, before, connection) }
    const change = connectionChange(ref.namespace, ref.connectionId, before, after, deps.quota)
    const committed = await store.commit({ ...change, checks: [...(change.checks ?? []), ended] })
    if (!committed.ok && committed.full.length > 0) {
      denials.recordWriteRefusal(request, context.caller, ref.namespace, 'namespace_full')
      throw namespaceFull(ref.namespace)
    }
    if (!committed.ok) return 'conflict'
    await recordWrite(event, context, ref)
    // Another client or none: the tokens of the former one are worth nothing any more.
    if (before?.privatePart.tokens !== undefined && draft.privatePart.tokens === undefined) {
      await deps.credentials.revoke(ref, before, 'its client was changed')
    }
    return connectionBytes(withTicket(links, connection, ref, draft))
  }

  function recordWrite(event: string, { caller }: RequestContext, ref: ConnectionRef): Promise<void> {
    return audit.recordDone(event, { ...auditedCaller(caller), ...ref })
  }

  return {
    async create(write, ref, context) {
      const draft = await draftWritable(write, ref, context)
      const connection = await withProbe(deps.upstream, draft, context)
      return commit(connection, { event: 'connection.created', ref, draft, before: undefined }, context)
    },
    async replace(write, ref, before, context) {
      // An id that the caller does not see must behave like a free one, so the checks of `create` run first and can
      // throw 400 or 403; the 404 follows from `authorizer.requireAccess`.
      if (!sees(context, ref, before)) await draftWritable(write, ref, context)
      authorizer.requireAccess(context, ref, before, 'write')
      // With other headers, or another query in the URL, the server may respond differently.
      const isMoved = write.mcpUrl !== undefined && write.mcpUrl !== before.connection.mcpUrl
      const needsProbe = write.headers !== undefined || write.oauth !== undefined || isMoved
      const fields = needsProbe ? (await configOf(context.registry, before)).fields : []
      const draft = draftChange(write, before, { ref, headersKey, signInKey, fields })
      const { status, serverInfo } = before.connection
      const unchanged: Connection = { ...draft.connection, status, ...(serverInfo && { serverInfo }) }
      requireWritable(context, ref, unchanged)
      const connection = needsProbe
        ? await withProbe(
            deps.upstream,
            await signedIn(deps.credentials, draft, { ref, stored: before, context }),
            context,
          )
        : unchanged
      return commit(connection, { event: 'connection.changed', ref, draft, before }, context)
    },
    async delete(ref, before, context) {
      const change = connectionChange(ref.namespace, ref.connectionId, before, undefined)
      if (!(await store.commit(change)).ok) return false
      await recordWrite('connection.deleted', context, ref)
      await deps.credentials.revoke(ref, before, 'the connection was deleted')
      return true
    },
  }
}

/**
 * Adds the status and server info from probing the server. A mock is not probed, nor what lacks input. Throws
 * `invalid_request` if the address must not be reached; any other failure becomes the connection's status.
 */
async function withProbe(
  upstream: Upstream,
  { connection, target, inputRequired }: Draft,
  { caller, request }: RequestContext,
): Promise<Connection> {
  if (connection.mock?.enabled === true || connection.mcpUrl === null) {
    return { ...connection, status: { state: 'connected' } }
  }
  if (inputRequired !== undefined) return { ...connection, status: inputRequired }
  const via = request.headers.get('via') ?? undefined
  try {
    return { ...connection, ...(await probeServer(upstream, target.url, target.headers, { holder: caller, via })) }
  } catch (error) {
    if (error instanceof UpstreamError) throw invalidRequest(`mcpUrl: ${error.message}`)
    throw error
  }
}
