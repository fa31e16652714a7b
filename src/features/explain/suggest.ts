/** `POST /tokens/suggest`: a policy that allows what was called, made from the record of calls (contract, 21.6). */

import { RE2JS } from 're2js'
import type { RequestContext } from '../../auth/authorizer.ts'
import { PlatformError } from '../../errors.ts'
import { tokenCharsMax } from '../../limits.ts'
import type { Constraint } from '../../model/constraint.ts'
import { type Suggestion, type SuggestRequest, suggestedDaysDefault } from '../../model/explain.ts'
import type { RecordedCall } from '../../ops/call-filter.ts'
import { RecentCalls } from '../records/recent-calls.ts'
import { claimsToMint } from '../tokens/mint.ts'
import type { ExplainDeps } from './explain-deps.ts'
import { Examined } from './seen-tools.ts'
import { readSubject } from './subject.ts'

/** Throws 404 `not_found` for a token as `readSubject`. */
export async function suggestPolicy(
  deps: ExplainDeps,
  context: RequestContext,
  { days = suggestedDaysDefault, namespace, token }: SuggestRequest,
): Promise<Suggestion> {
  const subject = token === undefined ? undefined : await readSubject(deps, context, { token }) // 404
  const until = deps.clock.now()
  const since = until - days * 24 * 3600 * 1000
  const recorded = deps.callsPath !== undefined
  const { keyId } = context.caller
  const examined = new Examined(deps.clock)
  const record = new RecentCalls(deps, context, { since, until, namespace, token: subject?.token?.claims.jti })
  const used = new Used()
  for await (const lines of record.lines) {
    for (const call of lines) if (subject !== undefined || call.keyId === keyId) used.add(call)
    if (!examined.hasTime()) break
  }
  const made = recorded ? await policyOf(deps, context, used) : notRecorded
  return {
    policy: made.policy,
    from: {
      since: new Date(since).toISOString(),
      until: new Date(until).toISOString(),
      calls: used.calls,
      refused: used.refused,
      connections: used.connections.size,
      tools: used.tools.size,
      recorded,
      complete: examined.isComplete && !record.stopped,
    },
    notes: made.notes,
  }
}

type Note = Suggestion['notes'][number]
const note = (code: Note['code'], words: string): Note => ({ code, words })
const notRecorded = {
  policy: null,
  notes: [note('not-recorded', 'postern does not record calls here (--no-call-record).')],
}

/** The calls that were let through, and the number of those that were not. */
class Used {
  calls = 0
  refused = 0
  readonly namespaces = new Set<string>()
  /** As `NAMESPACE/ID`. */
  readonly connections = new Set<string>()
  readonly ids = new Set<string>()
  readonly tools = new Set<string>()
  /** As `NAMESPACE/ID TOOL`. */
  readonly pairs = new Set<string>()

  add({ namespace = '', connectionId = '', tool = '', outcome }: RecordedCall): void {
    this.calls += 1
    if (outcome === 'refused') {
      this.refused += 1
      return
    }
    const connection = `${namespace}/${connectionId}`
    this.namespaces.add(namespace)
    this.connections.add(connection)
    this.ids.add(connectionId)
    this.tools.add(tool)
    this.pairs.add(`${connection} ${tool}`)
  }
}

/** A policy that allows what was used, or why there is none. */
async function policyOf(
  deps: ExplainDeps,
  context: RequestContext,
  { namespaces, connections, ids, tools, pairs }: Used,
): Promise<{ readonly policy: Constraint[] | null; readonly notes: Note[] }> {
  // A token may not see all calls of its key, and none without `read`.
  const seen = context.caller.token === undefined ? '' : ' that this token may see'
  if (tools.size === 0) return { policy: null, notes: [note('no-calls', `Nothing${seen} was called in this time.`)] }
  // A record may have a hundred thousand names, of which no token has room for a tenth.
  const characters = [...tools, ...ids].reduce((sum, name) => sum + name.length, 0)
  const what = `${tools.size} tools on ${connections.size} connections`
  const tooLarge = { policy: null, notes: [note('too-large', `A policy for ${what} would not fit a token.`)] }
  if (characters > tokenCharsMax) return tooLarge
  const names = [...tools].sort()
  const policy: Constraint[] = [
    {
      namespaces: [...namespaces].sort(),
      resources: 'connections',
      operations: 'execute',
      metadata: [...ids].sort().map((connectionId) => ({ connectionId })),
      rpcReqMatch: { 'params.name': `^(?:${names.map(RE2JS.quote).join('|')})$` },
    },
  ]
  // The record has only the beginning of a very long name.
  if (names.some((name) => cutName.test(name))) return tooLarge
  try {
    await claimsToMint({ policy }, context, deps) // 400
  } catch (thrown) {
    if (!(thrown instanceof PlatformError)) throw thrown
    return tooLarge
  }
  const notes = [note('arguments-unknown', 'The record has no arguments, so the policy allows any.')]
  const [one, name] = uncalled([...connections].sort(), names, pairs)
  const crossed: string[] = []
  if (one !== undefined)
    crossed.push(`Each of the tools is allowed on each of the connections: ${one} with ${name} was not called.`)
  if (namespaces.size * ids.size > connections.size)
    crossed.push('Each of the ids of connections is allowed in each of the namespaces.')
  if (crossed.length > 0) notes.push(note('cross-product', crossed.join(' ')))
  return { policy, notes }
}

/** The first connection and tool that are no pair; none if all are. Looks at one more than there are pairs. */
function uncalled(connections: readonly string[], tools: readonly string[], pairs: ReadonlySet<string>): string[] {
  for (const one of connections) for (const name of tools) if (!pairs.has(`${one} ${name}`)) return [one, name]
  return []
}

/** A name as `recordedTool` cuts it. */
const cutName = /…[0-9a-f]{8}$/
