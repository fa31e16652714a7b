/** Views of a namespace over HTTP: list, read, write, delete (contract, 20.10). */

import { auditedCaller } from '../../auth/authenticate.ts'
import { managedBy, type RequestContext } from '../../auth/authorizer.ts'
import { answerWhileAllowed } from '../../auth/while-allowed.ts'
import { invalidRequest, notFound, PlatformError } from '../../errors.ts'
import { allowanceOf } from '../../fairness/allowance.ts'
import type { Work } from '../../fairness/turns.ts'
import { readOptionalBody } from '../../http/body.ts'
import { handlersOf } from '../../http/handler.ts'
import { namesInPath } from '../../http/path.ts'
import { refuseQuery } from '../../http/query.ts'
import { privateJson } from '../../http/respond.ts'
import { tokenCharsMax } from '../../limits.ts'
import { isViewName, type View, type ViewDetail, ViewName, ViewWrite, viewOf } from '../../model/view.ts'
import { viewPolicyProblem } from '../../policy/view-policy.ts'
import { bodyProblemText, validatorOf } from '../../schema/check.ts'
import { reading } from '../../schema/json.ts'
import { readView, viewEntry } from '../../storage/directory-records.ts'
import { refuseFixture } from '../../storage/fixture-places.ts'
import { keyOf, prefixOf, prefixRange } from '../../storage/keys.ts'
import type { Entry, Store } from '../../storage/store.ts'
import type { OrganizationDeps } from './organization-deps.ts'

/** Contract 20.10: views of a namespace. Past it: 403. */
export const viewsMax = 100

const writeShape = validatorOf(ViewWrite)
const missing = 'View not found'
const toRead = { resource: 'namespaces', operation: 'read' } as const

export const viewHandlers = handlersOf({ listViews: answerWhileAllowed(viewsSeen), getView, putView, deleteView })

async function viewsSeen(deps: OrganizationDeps, context: RequestContext) {
  const { request } = context
  const { namespace } = await deps.authorizer.requireManager(context, namesInPath(request.url)[0], toRead) // 404, 403
  refuseQuery(request.url) // 400
  const views = await viewsOf(deps.store, request, namespace) // 429
  return { views: views.map((view) => detailOf(deps, view)) }
}

/** All views of a namespace, which are read in their owner's time: they may have two megabytes. Rejects with 429. */
export async function viewsOf(store: Store, request: Request, namespace: string): Promise<View[]> {
  const { entries } = await store.range({ ...prefixRange(prefixOf('view', namespace)), limit: viewsMax })
  const bytes = entries.reduce((sum, { value }) => sum + value.length, 0)
  return allowanceOf(request).parse(bytes, readingViews(entries))
}

function* readingViews(entries: readonly Entry[]): Work<View[]> {
  const views: View[] = []
  for (const { value } of entries) views.push(yield* reading(value.length, () => readView(value)))
  return views
}

async function getView(deps: OrganizationDeps, request: Request): Promise<Response> {
  const { authorizer, store } = deps
  const context = await authorizer.authenticate(request) // 401, 429
  const { namespace } = await authorizer.requireManager(context, namesInPath(request.url)[0], toRead) // 404, 403
  refuseQuery(request.url) // 400
  const value = await store.get(keyOf('view', namespace, nameIn(request)))
  if (value === undefined) throw notFound(missing) // 404
  return viewResponse(deps, readView(value))
}

async function putView(deps: OrganizationDeps, request: Request): Promise<Response> {
  const { store, audit, writes, clock } = deps
  const { caller, change } = await writes.begin(request, managedBy(deps)) // 401, 429, 404, 403, 400
  const [, , name = ''] = namesInPath(request.url)
  if (!isViewName(name)) throw invalidRequest(`the name of a view ${ViewName['errorMessage']}`) // 400
  const wanted = await readOptionalBody(request, writeShape) // 400
  if (JSON.stringify(wanted.policy).length > tokenCharsMax)
    throw invalidRequest(`policy: has more than ${tokenCharsMax} characters`) // 400
  const problem = await allowanceOf(request).run(viewPolicyProblem(wanted.policy)) // 429
  if (problem !== undefined) throw invalidRequest(bodyProblemText(problem)) // 400
  const { view, isNew } = await change(async (_, { namespace }) => {
    const key = keyOf('view', namespace, name)
    await refuseFixture(store, key) // 409
    const before = await store.get(key)
    if (before === undefined) {
      const { keys } = await store.keys({ ...prefixRange(prefixOf('view', namespace)), limit: viewsMax })
      if (keys.length >= viewsMax)
        throw new PlatformError('forbidden', `The namespace ${namespace} has ${viewsMax} views: delete one first`) // 403
    }
    const updatedAt = new Date(clock.now()).toISOString()
    const createdAt = before === undefined ? updatedAt : readView(before).createdAt
    const view = viewOf({ namespace, name }, wanted, { createdAt, updatedAt })
    return { write: { puts: [viewEntry(view)] }, result: { view, isNew: before === undefined } }
  })
  const { namespace } = view
  const event = isNew ? 'view.created' : 'view.changed'
  await audit.recordDone(event, { ...auditedCaller(caller), namespace, view: name })
  return viewResponse(deps, view, isNew ? 201 : 200)
}

async function deleteView(deps: OrganizationDeps, request: Request): Promise<Response> {
  const { store, audit, writes } = deps
  const { caller, change } = await writes.begin(request, managedBy(deps), 'removal') // 401, 429, 404, 403, 400
  const name = nameIn(request) // 404
  const namespace = await change(async (_, { namespace }) => {
    const key = keyOf('view', namespace, name)
    await refuseFixture(store, key) // 409
    const value = await store.get(key)
    if (value === undefined) throw notFound(missing) // 404
    const deletes = [key, keyOf('publishedEntry', namespace, name)]
    return { write: { checks: [{ key, value }], deletes, fromReserve: 'deletion' }, result: namespace }
  })
  await audit.recordDone('view.deleted', { ...auditedCaller(caller), namespace, view: name })
  return new Response(JSON.stringify({ success: true, namespace, name }), { headers: privateJson })
}

/** The view's name in the path. Throws 404 for one that no view can have. */
function nameIn(request: Request): string {
  const [, , name = ''] = namesInPath(request.url)
  if (!isViewName(name)) throw notFound(missing)
  return name
}

function detailOf({ base }: OrganizationDeps, view: View): ViewDetail {
  return { ...view, url: `${base}/connect/${view.namespace}/mcp/${view.name}` }
}

function viewResponse(deps: OrganizationDeps, view: View, status = 200): Response {
  return new Response(JSON.stringify(detailOf(deps, view)), { status, headers: privateJson })
}
