/**
 * `POST /tokens/diff`: a request that a new policy allows and an old one does not (contract, 21.5).
 *
 * The constraints of a policy are asked of independent parts of a request: its namespace, its resource and operation,
 * the facts of its connection, its message. So each part is looked for alone, and a request that differs in one of them
 * is put together at the end. It is an example only if the whole explanation of it says so.
 */

import { accessTo, type RequestContext } from '../../auth/authorizer.ts'
import { constraintOf, invalidRequest, PlatformError } from '../../errors.ts'
import { allowanceOf } from '../../fairness/allowance.ts'
import type { Work } from '../../fairness/turns.ts'
import { operationKinds, resourceTypes } from '../../model/constraint.ts'
import type { DescribedRequest, Diff, DiffRequest } from '../../model/explain.ts'
import type { Block, MetadataSet } from '../../policy/block.ts'
import { type Access, type Decision, decide, decideOnConnection, decideOnMessage } from '../../policy/decide.ts'
import { connectionIdFact, constraintAllows, joiningSets } from '../../policy/metadata.ts'
import { findingWiderMessages, messageOf, ordinaryId } from '../../policy/wider-messages.ts'
import { describing } from './described-request.ts'
import type { ExplainDeps } from './explain-deps.ts'
import { explainRequest } from './explanation.ts'
import { Examined, everySeen, type SeenConnection } from './seen-tools.ts'
import { type Explained, readSubject } from './subject.ts'

/** Ours: requests that `POST /tokens/diff` explains completely to find an example that the caller has access to. Past it: the example may be a request that the caller itself has no access to. */
const explainedMax = 100

interface Candidate {
  readonly request: DescribedRequest
  /** The place of the old policy that refuses it. Undefined: reach alone may. */
  readonly refusedBy: string | undefined
}

/** Throws as `readSubject`. */
export async function diffPolicies(
  deps: ExplainDeps,
  context: RequestContext,
  { old: given, new: next, namespace }: DiffRequest,
): Promise<Diff> {
  for (const [name, { token, policy }] of Object.entries({ old: given, new: next }))
    if (token === undefined && policy === undefined) throw invalidRequest(`${name}: name a token or a policy`)
  const old = await readSubject(deps, context, given) // 400, 404
  const newer = await readSubject(deps, context, next) // 400, 404
  const examined = new Examined(deps.clock)
  const seen: SeenConnection[] = []
  for await (const one of everySeen(deps, context, examined, { namespace })) seen.push(one)
  const search = new Search({ old, newer }, seen, namespace, examined)
  const candidates = await allowanceOf(context.request).run(search.candidates()) // 429
  const found =
    (await firstReached(deps, context, search, candidates)) ?? candidates.find((one) => one.refusedBy !== undefined)
  const lifetime = { old: old.lifetime ?? 0, new: newer.lifetime ?? 0 }
  const because = found !== undefined ? 'request' : lifetime.new > lifetime.old ? 'lifetime' : null
  const { connections, tools, isComplete } = examined
  const searched = { requests: search.requests, connections, tools, values: search.values }
  return {
    verdict: because === null ? 'not_wider_found' : 'wider',
    because,
    example: found?.request ?? null,
    refusedBy: found?.refusedBy ?? null,
    lifetime,
    searched: { ...searched, complete: isComplete && search.isComplete },
    words: wordsOf(found?.request, lifetime, searched),
  }
}

/** The first candidate that is allowed as a whole by the new policy, and refused by the old one. */
async function firstReached(
  deps: ExplainDeps,
  context: RequestContext,
  { subjects: { old, newer }, examined }: Search,
  candidates: readonly Candidate[],
): Promise<Candidate | undefined> {
  for (const { request } of candidates.slice(0, explainedMax)) {
    if (!examined.hasTime()) return undefined
    const after = await explainRequest(deps, context, newer, request)
    if (after.explanation.verdict !== 'allow') continue
    const { verdict, decidedBy } = (await explainRequest(deps, context, old, request)).explanation
    if (verdict === 'refuse' && decidedBy !== null) return { request, refusedBy: decidedBy.place }
  }
  return undefined
}

interface Subjects {
  readonly old: Explained
  readonly newer: Explained
}

class Search {
  readonly subjects: Subjects
  readonly examined: Examined
  requests = 0
  values = 0
  isComplete = true
  readonly #old: readonly Block[]
  readonly #new: readonly Block[]
  readonly #seen: readonly SeenConnection[]
  readonly #only: string | undefined
  /** Whether the two act for different users or organizations, and reach different things. */
  readonly #reachDiffers: boolean
  readonly #found: Candidate[] = []

  constructor(subjects: Subjects, seen: readonly SeenConnection[], only: string | undefined, examined: Examined) {
    const [old, newer] = [subjects.old.caller, subjects.newer.caller]
    this.subjects = subjects
    this.examined = examined
    this.#old = old.blocks
    this.#new = newer.blocks
    this.#reachDiffers = old.userId !== newer.userId || old.organizationId !== newer.organizationId
    this.#seen = seen
    this.#only = only
  }

  /** Those with connections that the caller sees come first. */
  *candidates(): Work<Candidate[]> {
    const bodies = yield* this.#messages()
    yield* this.#calls(bodies)
    const sets = yield* this.#twoSets(yield* this.#metadata())
    const two = yield* firstTwo(bodies, (body) => onMessage(this.#old, body))
    for (const one of this.#seen) {
      const { namespace, connectionId: connection } = one
      for (const operation of ['read', 'write'] as const)
        yield* this.#try({ namespace, connection, operation }, accessTo(one, one.stored, operation), true)
    }
    for (const namespace of this.#namespaces())
      for (const resource of resourceTypes)
        for (const operation of operationKinds) {
          if (resource === 'connections') yield* this.#onConnections(namespace, operation, sets, two)
          else yield* this.#try({ namespace, resource, operation }, { namespace, resource, operation }, false)
        }
    return this.#found
  }

  /** The least metadata that the new policy asks for: an old one that allows all of these allows any with more, too. */
  *#metadata(): Work<readonly MetadataSet[]> {
    let joined: readonly MetadataSet[] | undefined = [[]]
    for (const { metadata } of this.#new)
      if (metadata !== undefined && joined) joined = yield* joiningSets(joined, metadata)
    this.isComplete &&= joined !== undefined
    this.values += joined?.length ?? 0
    return joined ?? []
  }

  *#messages(): Work<Record<string, unknown>[]> {
    const both = { old: this.#old, newer: this.#new }
    const tools = this.#seen.flatMap((one) => one.tools ?? [])
    const { messages, values, isComplete } = yield* findingWiderMessages(both, tools, () => this.examined.hasTime())
    this.values += values
    this.isComplete &&= isComplete
    const bodies = messages.map(messageOf).filter((body) => body !== undefined)
    const allowed: Record<string, unknown>[] = []
    for (const body of bodies) {
      if (!(yield* isMessage(body))) continue
      if ((yield* onMessage(this.#new, body)).allowed) allowed.push(body)
    }
    return allowed
  }

  /**
   * The first of these sets, and the first that the old policy does not allow. Each has an id that no policy names,
   * where one names any: whether it is allowed depends on it.
   */
  *#twoSets(metadata: readonly MetadataSet[]): Work<MetadataSet[]> {
    const named = [...this.#old, ...this.#new].flatMap(({ metadata = [] }) => metadata.flat())
    const ids = new Set(named.filter(([key]) => key === connectionIdFact).map(([, value]) => value))
    const own: MetadataSet = ids.size === 0 ? [] : [[connectionIdFact, unnamed('connection', ids)]]
    const sets = metadata.map((set) => (set.some(([key]) => key === connectionIdFact) ? set : [...set, ...own]))
    const old = this.#old
    return yield* firstTwo(sets, function* (set) {
      yield stepCost
      const facts = factsOf(set)
      return { allowed: old.every((block) => block.metadata === undefined || constraintAllows(block.metadata, facts)) }
    })
  }

  /** Calls of the connections that the caller sees, of their own tools first. */
  *#calls(bodies: readonly Record<string, unknown>[]): Work<void> {
    const callable: SeenConnection[] = []
    for (const one of this.#seen) {
      yield stepCost
      if (decideOnConnection(this.#new, accessTo(one, one.stored, 'execute')).allowed) callable.push(one)
    }
    const [base] = bodies
    if (base === undefined) return
    for (const one of callable)
      for (const name of one.tools ?? []) {
        if (!this.examined.hasTime()) return
        yield* this.#tryCall(one, withTool(base, name))
      }
    const [first] = callable
    if (first !== undefined) for (const body of bodies) yield* this.#tryCall(first, body)
    for (const one of callable) yield* this.#tryCall(one, base)
  }

  #tryCall(one: SeenConnection, body: Record<string, unknown>): Work<void> {
    const { namespace, connectionId: connection } = one
    const access = { ...accessTo(one, one.stored, 'execute'), rpc: body }
    return this.#try({ namespace, connection, ...this.#described(body) }, access, true)
  }

  /** As a call, where no rule asks for the id: that of a described call is not known. */
  #described(body: Record<string, unknown>): DescribedRequest {
    const blocks = [...this.#old, ...this.#new]
    return blocks.some(({ rpc = [] }) => rpc.some(({ path }) => path === 'id')) ? { message: body } : asCall(body)
  }

  /** Namespaces that the caller sees, those that the policies name, and one that nobody names. */
  #namespaces(): ReadonlySet<string> {
    if (this.#only !== undefined) return new Set([this.#only])
    const named = [...this.#new, ...this.#old].flatMap(({ namespaces = [] }) => namespaces)
    const all = new Set([...this.#seen.map(({ namespace }) => namespace), ...named])
    return all.add(unnamed('namespace', all))
  }

  *#onConnections(
    namespace: string,
    operation: Access['operation'],
    sets: readonly MetadataSet[],
    bodies: readonly Record<string, unknown>[],
  ): Work<void> {
    if (operation === 'read' && this.#new.every(({ metadata }) => metadata === undefined)) {
      const list = { namespace, resource: 'connections', operation } as const
      yield* this.#try(list, { ...list, metadata: 'narrowed' }, false)
    }
    for (const set of sets) {
      const facts = factsOf(set)
      const { metadata } = facts
      const access = { namespace, operation, metadata: facts }
      if (operation !== 'execute') yield* this.#try({ namespace, operation, metadata }, access, operation === 'read')
      else
        for (const body of bodies)
          yield* this.#try({ namespace, metadata, ...this.#described(body) }, { ...access, rpc: body }, true)
    }
  }

  /** `isOne`: it is about one connection, whose metadata hides it. */
  *#try(
    request: DescribedRequest,
    access: Partial<Access> & Pick<Access, 'namespace' | 'operation'>,
    isOne: boolean,
  ): Work<void> {
    const whole: Access = { resource: 'connections', metadata: 'none', ...access }
    this.requests += 1
    yield stepCost
    const allowed = isOne ? yield* decideOnMessage(this.#new, whole) : decide(this.#new, whole)
    if (!allowed.allowed || this.#found.length >= explainedMax) return
    const decision = isOne ? yield* decideOnMessage(this.#old, whole) : decide(this.#old, whole)
    if (!decision.allowed) this.#found.push({ request, refusedBy: constraintOf(decision) })
    else if (this.#reachDiffers && !this.#found.some((one) => one.request.namespace === request.namespace))
      this.#found.push({ request, refusedBy: undefined })
  }
}

/** The first, and the first that the old policy does not allow. */
function* firstTwo<T>(all: readonly T[], onOld: (one: T) => Work<{ readonly allowed: boolean }>): Work<T[]> {
  const first = all.slice(0, 1)
  for (const one of all) if (!(yield* onOld(one)).allowed) return one === first[0] ? first : [...first, one]
  return first
}

function unnamed(kind: string, names: ReadonlySet<string>): string {
  let number = 1
  while (names.has(`another-${kind}-${number}`)) number += 1
  return `another-${kind}-${number}`
}

function factsOf(set: MetadataSet) {
  const metadata = Object.fromEntries(set)
  return { connectionId: metadata[connectionIdFact] ?? '', metadata }
}

/** Whether the endpoint would read it as a message. */
function* isMessage(body: Record<string, unknown>): Work<boolean> {
  try {
    yield* describing({ message: body })
    return true
  } catch (thrown) {
    if (thrown instanceof PlatformError) return false
    throw thrown
  }
}

/** Cost of deciding on one request without a message, in the unit of `sliceCost`. */
const stepCost = 500

/** The decision on a message alone. */
function onMessage(blocks: readonly Block[], rpc: unknown): Generator<number, Decision> {
  const rules = blocks.flatMap((block) => (block.rpc === undefined ? [] : [{ rpc: block.rpc }]))
  const anywhere = { namespace: '', resource: 'connections', operation: 'execute', metadata: 'none' } as const
  return decideOnMessage(rules, { ...anywhere, rpc })
}

function withTool(body: Record<string, unknown>, name: string): Record<string, unknown> {
  return { ...body, params: { ...(body['params'] as object), name } }
}

/** The message as a call of a tool, if it is an ordinary one. */
function asCall(body: Record<string, unknown>): DescribedRequest {
  const { params, method, jsonrpc, id, ...others } = body as {
    params?: { name?: unknown; arguments?: unknown }
  } & typeof body
  const { name, arguments: args = {}, ...more } = params ?? {}
  const isCall = method === 'tools/call' && jsonrpc === '2.0' && typeof name === 'string' && typeof args === 'object'
  // The id of a described call is not known.
  const isOrdinary = id === ordinaryId && Object.keys({ ...others, ...more }).length === 0
  return isCall && isOrdinary ? { tool: name, arguments: args as Record<string, unknown> } : { message: body }
}

function wordsOf(
  request: DescribedRequest | undefined,
  lifetime: Diff['lifetime'],
  searched: Omit<Diff['searched'], 'complete'>,
): string {
  if (request !== undefined) return `The new policy also allows ${inWords(request)}.`
  const { requests, connections, tools, values } = searched
  const among = `among ${requests} requests, ${connections} connections, ${tools} tools and ${values} values`
  const none = `No request was found that the new policy allows and the old one refuses, ${among}`
  if (lifetime.new <= lifetime.old) return `${none}; this is not a proof.`
  return `${none}, but the new lifetime is longer: ${lifetime.new} s instead of ${lifetime.old} s.`
}

function inWords({ namespace, resource, operation, connection, metadata, tool, message }: DescribedRequest): string {
  const where = `in ${namespace}`
  const of = metadata === undefined ? '' : ` with the metadata ${JSON.stringify(metadata)}`
  const subject = connection ?? `a connection${of}`
  if (tool !== undefined) return `tools/call of ${tool} on ${subject} ${where}`
  if (message !== undefined) return `${String(message['method'])} on ${subject} ${where}: ${JSON.stringify(message)}`
  if (connection !== undefined || metadata !== undefined) return `${operation} of ${subject} ${where}`
  return `${operation} of ${resource} ${where}`
}
