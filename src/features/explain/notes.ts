/** Reasons outside the policy for which a call would fail (contract, 21.2). */

import type { RequestContext } from '../../auth/authorizer.ts'
import { allowanceOf } from '../../fairness/allowance.ts'
import type { Note } from '../../model/explain.ts'
import { explainingConstraints } from '../../policy/explain.ts'
import { isUsable } from '../pins/pins.ts'
import type { LookedAt } from './described-request.ts'
import type { ExplainDeps } from './explain-deps.ts'
import { withTools } from './seen-tools.ts'

/** None unless the caller sees the connection that is called, and its own policy lets it find out by calling. */
export async function notesOn(
  deps: ExplainDeps,
  context: RequestContext,
  { connection, request }: LookedAt,
  tool: string | undefined,
): Promise<Note[]> {
  if (connection === undefined || request.operation !== 'execute') return []
  const own = await allowanceOf(context.request).run(explainingConstraints(context.caller.blocks, request)) // 429
  if (own.some(({ verdict }) => verdict === 'refuse')) return []
  const { connectionId, stored } = connection
  const { status } = stored.connection
  const url = deps.links.urlOf(connection)
  const notes: Note[] = []
  const say = (code: Note['code'], words: string) => notes.push({ code, words: `${connectionId} ${words}` })
  if (status.state === 'auth_required') say('connection_state', `waits for somebody to sign in: ${url}`)
  if (status.state === 'input_required') say('connection_state', `waits for somebody to enter values: ${url}`)
  const test = `contact its server with \`postern connection test ${connectionId} -n ${connection.namespace}\``
  if (status.state === 'disconnected') say('connection_state', `is disconnected: ${test}`)
  if (status.state === 'error')
    say('connection_state', `failed when postern last contacted it (${status.message}): ${test}`)
  if (tool === undefined) return notes
  const isBlocking = (await deps.pins.settingOf(context, connection)) === 'block'
  const pinned = isBlocking ? (await deps.pins.of(context, connection)).tools : undefined
  if (pinned?.has(tool) && !isUsable(pinned.get(tool)))
    say('pin', `has a definition of ${tool} that nobody has accepted: see \`postern connection pins\``)
  else {
    const [known] = await withTools(deps, context, [connection])
    if (known?.tools?.includes(tool) === false) say('unknown_tool', `is not known to have a tool ${tool}`)
  }
  return notes
}
