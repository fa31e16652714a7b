/**
 * The verdict of each constraint on a request of which some may not be known. Each test is that of a real decision
 * (`decide.ts`); a constraint whose question cannot be answered depends on what is missing.
 */

import { constraintOf } from '../errors.ts'
import type { OperationKind, ResourceType } from '../model/constraint.ts'
import type { ExplainedConstraint, Verdict } from '../model/explain.ts'
import { cutText } from '../schema/cut-text.ts'
import type { Block } from './block.ts'
import { type Access, allows, fieldsInOrder, type PlainField } from './decide.ts'
import { connectionIdFact, constraintAllows } from './metadata.ts'
import { isParamsRule, isPreliminary, RpcBody, type RpcRule } from './rpc-match.ts'

/** A request; what is undefined is not known. */
export interface Described {
  readonly namespace: string | undefined
  readonly resource: ResourceType | undefined
  readonly operation: OperationKind | undefined
  /** As for `Access`. The id of a connection may be unknown although its metadata is known. */
  readonly metadata: Access['metadata'] | { readonly metadata: Readonly<Record<string, unknown>> } | undefined
  readonly message: DescribedMessage | undefined
}

export interface DescribedMessage {
  readonly body: unknown
  /** Whether the path is as in the body; what is at another path is not known. */
  isKnown(path: string): boolean
}

type Decided = Pick<ExplainedConstraint, 'verdict' | 'missing' | 'words'>

/** Characters of a value that are shown. Past it: the rest is left out. */
const shownCharsMax = 100

/** The verdict of every constraint, block by block, in the order of the fields. Yields as `explainingRules`. */
export function* explainingConstraints(
  blocks: readonly Block[],
  request: Described,
): Generator<number, ExplainedConstraint[]> {
  const rules = Map.groupBy(yield* explainingRules(blocks, request), ({ block }) => block)
  return blocks.flatMap((block, index) => [...explainFields(block, index, request), ...(rules.get(index) ?? [])])
}

/** The verdicts of a block's fields, but for its rules. */
function explainFields(block: Block, index: number, request: Described): ExplainedConstraint[] {
  return fieldsInOrder
    .filter((field) => block[field] !== undefined)
    .map((field) => {
      const place = constraintOf({ block: index, name: block.name, field })
      return { place, block: index, field, path: null, ...onField(field, block, request) }
    })
}

/** The verdict of every rule on messages. Yields the cost of each step before it: there may be many rules. */
export function* explainingRules(
  blocks: readonly Block[],
  request: Described,
): Generator<number, ExplainedConstraint[]> {
  const found: ExplainedConstraint[] = []
  const body = new RpcBody(request.message?.body)
  for (const [index, block] of blocks.entries()) {
    for (const rule of block.rpc ?? []) {
      const at = { block: index, field: 'rpcReqMatch', path: rule.path }
      const place = constraintOf({ ...at, name: block.name })
      found.push({ place, ...at, ...(yield* onRule(rule, block, request, body)) })
    }
  }
  return found
}

function onField(field: PlainField, block: Block, request: Described): Decided {
  const words = `${field}: ${valuesOf[field](block)}`
  const missing = missingFor(field, block, request)
  if (missing.length > 0) return depends(words, missing)
  const { namespace = '', resource = 'connections', operation = 'read', metadata } = request
  const facts = typeof metadata === 'object' ? { connectionId: '', ...metadata } : (metadata ?? 'none')
  const isAllowed = allows[field](block, { namespace, resource, operation, metadata: facts })
  if (isAllowed) return allowed(words)
  const asked = { namespaces: namespace, resources: resource, operations: operation, metadata: 'another connection' }
  const other = field === 'metadata' && facts === 'none' ? 'no connection' : asked[field]
  return refused(`${words}; the request is for ${other}`)
}

/** A block's values in words: those of one field are alternatives, and the pairs of a set add up. */
const valuesOf: Record<PlainField, (block: Block) => string> = {
  namespaces: ({ namespaces = [] }) => namespaces.join(' or '),
  resources: ({ resources = [] }) => resources.join(' or '),
  operations: ({ operations = [] }) => operations.join(' or '),
  metadata: ({ metadata = [] }) =>
    metadata.map((set) => set.map(([key, value]) => `${key} = ${JSON.stringify(value)}`).join(' and ')).join(', or '),
}

function missingFor(field: PlainField, block: Block, { namespace, resource, operation, metadata }: Described) {
  if (field === 'namespaces') return namespace === undefined ? ['namespace'] : []
  if (field === 'resources') return resource === undefined ? ['resource'] : []
  if (field === 'operations') return operation === undefined ? ['operation'] : []
  if (metadata === undefined) return resource === undefined ? ['resource', 'metadata'] : ['metadata']
  if (metadata === 'narrowed') return ['metadata']
  if (typeof metadata !== 'object' || 'connectionId' in metadata) return []
  // The id of the connection decides where everything else is as it must be.
  const facts = { connectionId: '', ...metadata }
  const others = (block.metadata ?? []).map((set) => set.filter(([key]) => key !== connectionIdFact))
  return !constraintAllows(block.metadata ?? [], facts) && constraintAllows(others, facts) ? ['metadata'] : []
}

function* onRule(rule: RpcRule, { rpc = [] }: Block, request: Described, body: RpcBody): Generator<number, Decided> {
  const { path, pattern } = rule
  const { resource, operation, message } = request
  const must = `must contain a match of ${pattern}`
  const isOther = (resource ?? 'connections') !== 'connections' || (operation ?? 'execute') !== 'execute'
  if (isOther) return allowed(`${path} of a message ${must}; the request is not a message`)
  const missing: string[] = (['resource', 'operation', 'message'] as const).filter((one) => request[one] === undefined)
  if (message === undefined || missing.length > 0) return depends(`${path} ${must}`, missing)
  const isReply = !Object.hasOwn(message.body as object, 'method')
  if (isReply && rpc.every(isParamsRule))
    return depends(`${path} ${must}, unless the message answers a request of the server in this session`, ['session'])
  if (isParamsRule(rule) && isPreliminary(message.body))
    return allowed(`${path} ${must}; the rule does not apply to the handshake and lists`)
  if (!message.isKnown(path)) return depends(`${path} ${must}`, [path])
  if (yield* body.matches(rule)) return allowed(`${path} contains a match of ${pattern}`)
  const text = body.textAt(path)
  const shown =
    text === undefined ? 'has no value that can match' : `is ${JSON.stringify(cutText(text, shownCharsMax))}`
  return refused(`${path} ${shown}; it ${must}`)
}

const decidedAs =
  (verdict: Verdict) =>
  (words: string, missing: string[] = []): Decided => ({ verdict, missing, words })
const [allowed, refused, depends] = [decidedAs('allow'), decidedAs('refuse'), decidedAs('depends')]
