/** `POST /tokens/lint`: mistakes in a policy, and what it allows of what is there (contract, 21.3). */

import { accessTo, type RequestContext } from '../../auth/authorizer.ts'
import { accessibleNamespaces, firstNames } from '../../auth/namespace-access.ts'
import { secondsOf } from '../../clock.ts'
import { allowanceOf } from '../../fairness/allowance.ts'
import type { Work } from '../../fairness/turns.ts'
import { type Finding, findingCodes, type LintAnswer, type Subject } from '../../model/explain.ts'
import type { Block } from '../../policy/block.ts'
import { decideOnConnection, namespaceFilter } from '../../policy/decide.ts'
import { type Found, finding, lintingPolicy, mayHave, rulesOf, valuesIn } from '../../policy/lint.ts'
import { couldCall, toolRules } from '../../policy/tools.ts'
import { costToAsk, matches } from '../../schema/patterns.ts'
import { keyOf } from '../../storage/keys.ts'
import { connectionIds } from '../endpoint/seen-connections.ts'
import { RecentCalls } from '../records/recent-calls.ts'
import type { ExplainDeps } from './explain-deps.ts'
import { Examined, everySeen, type SeenConnection } from './seen-tools.ts'
import { type Explained, readSubject } from './subject.ts'

/** Contract 21.3: days of recorded calls with which `POST /tokens/lint` compares a policy. Past it: a tool that was called only earlier counts as not called. */
const unusedDays = 30

/** Ids of a namespace that are looked at, to find whether one exists. Past it: none does. */
const idsLookedAt = 100

/** Throws as `readSubject`. */
export async function lintSubject(deps: ExplainDeps, context: RequestContext, given: Subject): Promise<LintAnswer> {
  const subject = await readSubject(deps, context, given) // 400, 403, 404
  const { blocks } = subject.caller
  const allowance = allowanceOf(context.request)
  const examined = new Examined(deps.clock)
  const policy = await allowance.run(lintingPolicy(blocks, () => examined.hasTime())) // 429
  const inScope: SeenConnection[] = []
  for await (const seen of everySeen(deps, context, examined, { within: blocks }))
    if (decideOnConnection(blocks, accessTo(seen, seen.stored, 'execute')).allowed) inScope.push(seen)
  const tools = new Set(inScope.flatMap((one) => one.tools ?? []))
  const called = await calledTools(deps, context, examined)
  const found = [
    ...policy.found,
    ...lifetimeBeyondParent(deps, context, subject),
    ...(await emptyScope(deps, context, examined, blocks)),
    ...(examined.isComplete && tools.size > 0 ? await allowance.run(lintingNames(blocks, tools, examined)) : []),
    ...(await allowance.run(widerThanUsed(blocks, tools, called.tools, examined))),
  ]
  return {
    findings: sorted(found),
    searched: {
      connections: examined.connections,
      tools: examined.tools,
      calls: called.calls,
      complete: policy.isComplete && examined.isComplete && called.isComplete,
    },
  }
}

const severities = ['error', 'warning', 'info'] as const

function sorted(found: readonly Found[]): Finding[] {
  const all = found.map((one): Finding => {
    return { ...one, severity: findingCodes[one.code], docs: `/docs/policy#${one.code}` }
  })
  const order = new Intl.Collator('en', { numeric: true })
  return all.sort(
    (a, b) =>
      severities.indexOf(a.severity) - severities.indexOf(b.severity) ||
      order.compare(a.place, b.place) ||
      order.compare(a.code, b.code),
  )
}

function lifetimeBeyondParent(
  { clock }: ExplainDeps,
  { caller }: RequestContext,
  { caller: minted, inherited }: Explained,
) {
  const parent = caller.token
  if (parent === undefined) return []
  const left = parent.exp - secondsOf(clock)
  return valuesIn(minted.blocks, 'ttlSeconds')
    .filter(({ block, values }) => block >= inherited && values > left)
    .map(({ place, values }) => {
      const words = `${values} s is longer than the ${left} s that the minting credential has left`
      return finding('lifetime-beyond-parent', place, words)
    })
}

/** Constraints that leave nothing of what the caller reaches. */
async function emptyScope(
  { store }: ExplainDeps,
  context: RequestContext,
  examined: Examined,
  blocks: readonly Block[],
): Promise<Found[]> {
  const { caller, request } = context
  const [named] = valuesIn(blocks, 'namespaces')
  const [wanted] = valuesIn(blocks, 'metadata')
  const accessible = await accessibleNamespaces(store, context)
  const isAllowed = namespaceFilter([...caller.blocks, ...blocks])
  const isLeft = (name: string) => accessible.has(name) && isAllowed(name)
  const left = await allowanceOf(request).run(firstNames(named?.values ?? accessible, isLeft))
  if (named !== undefined && left.length === 0 && named.values.some(namespaceFilter(blocks)))
    return [finding('empty-scope', named.place, `you have access to none of: ${named.values.join(', ')}`)]
  if (wanted === undefined || !mayHave(blocks, 'resources', 'connections')) return []
  const narrowed = { ...context, caller: { ...caller, blocks: [...caller.blocks, ...blocks] } }
  for (const name of left) {
    if (!examined.hasTime()) return []
    // An id that the policy names is found whether or not there is such a connection.
    const ids = await connectionIds(store, narrowed, name, { from: '', most: idsLookedAt })
    const found = await store.getMany(ids.map((id) => keyOf('connection', name, id)))
    if (found.some((record) => record !== undefined)) return []
  }
  return [finding('empty-scope', wanted.place, 'no connection that you have access to has this metadata')]
}

/** Patterns of a tool's name, compared with the tools that are known. */
function* lintingNames(blocks: readonly Block[], tools: ReadonlySet<string>, examined: Examined): Work<Found[]> {
  const found: Found[] = []
  for (const { place, path, pattern } of rulesOf(blocks)) {
    if (path !== 'params.name') continue
    const matched: string[] = []
    for (const tool of tools) {
      yield costToAsk(pattern, tool)
      if (matches(pattern, tool)) matched.push(tool)
      if (!examined.hasTime()) return found
    }
    const meant = withoutAnchors(pattern)
    const others = matched.filter((tool) => tool !== meant)
    if (matched.length === 0) {
      const words = `${pattern} matches none of the ${tools.size} known tools of the connections in scope`
      found.push(finding('unknown-tool', place, words))
    } else if (tools.has(meant) && others.length > 0) {
      const words = `${pattern} matches ${meant}, and ${others.length} other tools as well`
      found.push(finding('also-matches', place, words, { examples: others }))
    }
  }
  return found
}

/** A pattern with its anchors and escapes taken off. */
function withoutAnchors(pattern: string): string {
  const inner = pattern.replace(/^(?:\^|\\A)/, '').replace(/(?:\$|\\z)$/, '')
  return inner.replace(/\\([^a-zA-Z0-9])/g, '$1')
}

async function calledTools(deps: ExplainDeps, context: RequestContext, examined: Examined) {
  const since = deps.clock.now() - unusedDays * 24 * 3600 * 1000
  const tools = new Set<string>()
  let calls = 0
  const record = new RecentCalls(deps, context, { since, user: context.caller.userId })
  for await (const lines of record.lines) {
    for (const { tool = '', outcome } of lines) if (outcome !== 'refused') tools.add(tool)
    calls += lines.length
    if (!examined.hasTime()) return { tools, calls, isComplete: false }
  }
  return { tools, calls, isComplete: !record.stopped }
}

function* widerThanUsed(
  blocks: readonly Block[],
  tools: ReadonlySet<string>,
  called: ReadonlySet<string>,
  examined: Examined,
): Work<Found[]> {
  if (called.size === 0) return []
  const rules = toolRules(blocks)
  const unused: string[] = []
  for (const tool of tools) {
    if (!examined.hasTime()) break
    if (!called.has(tool) && (yield* couldCall(rules, tool))) unused.push(tool)
  }
  if (unused.length === 0) return []
  const words = `allows ${unused.length} ${unused.length === 1 ? 'tool' : 'tools'} that you did not call in the last ${unusedDays} days`
  return [finding('wider-than-used', 'policy', words, { examples: unused })]
}
