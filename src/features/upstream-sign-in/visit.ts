/** The visitor of a connection's setup page: the holder of a ticket, or somebody who is signed in (contract, 14.3). */

import { contextOf } from '../../auth/authorizer.ts'
import { formTokenOf } from '../../auth/browser-sessions.ts'
import { isStillGood, makerOf } from '../../auth/maker.ts'
import { setupStateOf } from '../../auth/setup-links.ts'
import type { SharedParts } from '../../auth/shared-parts.ts'
import { oneConnection } from '../../auth/stored-connections.ts'
import { conflict, notFound } from '../../errors.ts'
import { allowanceOf } from '../../fairness/allowance.ts'
import { redirect } from '../../http/html-page.ts'
import { namesInPath, pathOf } from '../../http/path.ts'
import { readQuery } from '../../http/query.ts'
import type { ConnectionRef } from '../../model/connection.ts'
import { isConnectionId, isSlug } from '../../model/names.ts'
import { holderOf } from './oauth-fetch.ts'
import type { Visit } from './setup-pages.ts'

/** Milliseconds of a visit beside its form: many that wait for their holder's time do not begin together. */
const visitMs = 1

/** The visit, or the redirect to sign in first. Throws 404 and 403. */
export async function visitOf(deps: SharedParts, request: Request): Promise<Visit | Response> {
  const { authorizer, sessions, links, base } = deps
  const [namespace = '', connectionId = ''] = namesInPath(request.url)
  const ref = { namespace, connectionId }
  const isName = isSlug(namespace) && isConnectionId(connectionId)
  const ticket = readQuery(request.url).get('ticket') // 400
  const visit = ticket !== undefined && isName ? await visitWith(deps, request, ref, ticket) : undefined
  if (visit !== undefined) return visit
  if ((await sessions.find(request)) !== undefined) await allowanceOf(request).pace(visitMs) // 429
  // Meanwhile it may have ended, or its key was revoked.
  const session = await sessions.find(request)
  // The same for every name: a visitor who has not signed in learns nothing of what exists.
  if (session === undefined) return redirect(`${base}/signin?${new URLSearchParams({ next: pathOf(request.url) })}`)
  if (!isName) throw notFound()
  const context = contextOf(session, request, deps.clock)
  const { stored } = await authorizer.requireConnection(context, 'write', ref)
  const { userId, keyId } = session.caller
  const formToken = session.formToken(`setup ${namespace}/${connectionId}`)
  const maker = await makerOf(context, namespace)
  const by = { userId, keyId }
  const holder = await holderOf(deps, ref, by)
  return { request, ref, stored, action: links.urlOf(ref), formToken, maker, holder, by }
}

/** The visit of a ticket's holder; undefined if the ticket is not good for the connection as it is. */
async function visitWith(
  deps: SharedParts,
  request: Request,
  ref: ConnectionRef,
  ticket: string,
): Promise<Visit | undefined> {
  const { store, links, directory, signInKey } = deps
  const opened = links.openTicket(ticket, ref)
  if (opened === undefined) return undefined
  const allowance = allowanceOf(request)
  const holder = await holderOf(deps, ref)
  await allowance.belongsTo(holder)
  // The connection may have 64 kB, and its page many options: it is read when its holders have time.
  await allowance.pace(visitMs)
  const stored = await oneConnection(store, request, ref)
  const { maker, state } = opened
  if (stored === undefined || setupStateOf({ ref, ...stored }) !== state) return undefined
  if (!(await isStillGood(maker, ref.namespace, await directory.current()))) return undefined
  const action = `${links.urlOf(ref)}?ticket=${ticket}`
  const by = { linkKeyId: maker.keyId }
  return { request, ref, stored, action, formToken: formTokenOf(signInKey, ticket, 'setup'), maker, holder, by }
}

/** For a write: forms and servers take time. Throws `conflict`, 404 and 403 if the visitor has lost the right. */
export async function requireVisit(deps: SharedParts, { request }: Visit): Promise<void> {
  if ((await visitOf(deps, request)) instanceof Response)
    throw conflict('Your sign-in has ended in the meantime: open the page again')
}
