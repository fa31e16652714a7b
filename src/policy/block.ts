/**
 * Blocks: each constraint of a policy, parsed into a form that is ready to decide. Parsing is total: a policy that is
 * not understood completely is an error, so no later code meets an unknown field.
 */

import { type Constraint, type OperationKind, Policy, type ResourceType } from '../model/constraint.ts'
import { type Problem, placeOf, validatorOf } from '../schema/check.ts'
import { costToCompile, patternProblem, patternsProblem } from '../schema/patterns.ts'
import { pathProblem, type RpcRule } from './rpc-match.ts'
import { readTtl } from './ttl.ts'

/** An absent field does not restrict. A present list is never empty. */
export interface Block {
  /** Its name in refusals; left out for a block of the token, which is named by its index. */
  readonly name?: string
  readonly namespaces?: readonly string[]
  readonly resources?: readonly ResourceType[]
  readonly operations?: readonly OperationKind[]
  /** At least one set must match; a set matches if all its pairs do. */
  readonly metadata?: readonly MetadataSet[]
  readonly ttlSeconds?: number
  readonly rpc?: readonly RpcRule[]
}

/** Pairs of which all must match. */
export type MetadataSet = readonly (readonly [key: string, value: string])[]

/** Parses a constraint whose schema was checked; patterns are not compiled. Places are relative to the constraint. */
export function readConstraint(constraint: Constraint): { block: Block } | { problem: Problem } {
  const { namespaces, resources, operations, metadata, ttl, rpcReqMatch } = constraint
  const lifetime = ttl === undefined ? undefined : readTtl(ttl)
  if (lifetime !== undefined && 'message' in lifetime) return { problem: { place: 'ttl', message: lifetime.message } }
  const rpc: RpcRule[] = []
  for (const [path, pattern] of Object.entries(rpcReqMatch ?? {})) {
    const message = pathProblem(path)
    if (message !== undefined) return { problem: { place: placeOf(['rpcReqMatch', path]), message } }
    rpc.push({ path, pattern })
  }
  return {
    block: {
      ...(namespaces !== undefined && { namespaces: list(namespaces) }),
      ...(resources !== undefined && { resources: list(resources) }),
      ...(operations !== undefined && { operations: list(operations) }),
      ...(metadata !== undefined && { metadata: list(metadata).map((set) => Object.entries(set)) }),
      ...(lifetime !== undefined && { ttlSeconds: lifetime.seconds }),
      ...(rpc.length > 0 && { rpc }),
    },
  }
}

const policyShape = validatorOf(Policy)

/** Parses a policy, but no patterns, or returns the first problem, with a place such as `policy[0].ttl`. */
export function readPolicy(policy: unknown): { blocks: Block[] } | { problem: Problem } {
  if (!policyShape.isValid(policy)) return { problem: within('policy', policyShape.firstProblem(policy)) }
  const blocks: Block[] = []
  for (const [index, constraint] of policy.entries()) {
    const read = readConstraint(constraint)
    if ('problem' in read) return { problem: within(`policy[${index}]`, read.problem) }
    blocks.push(read.block)
  }
  return { blocks }
}

/**
 * The first invalid pattern of a policy, or the first one that exceeds a bound together with those before it.
 * `inherited` are the parents' blocks. Compiling is expensive, so call it after all other checks.
 */
export function policyPatternProblem(inherited: readonly Block[], own: readonly Block[]): Problem | undefined {
  const rulesOf = (blocks: readonly Block[]) =>
    blocks.flatMap(({ rpc = [] }, index) =>
      rpc.map(({ path, pattern }) => ({ pattern, place: ['policy', index, 'rpcReqMatch', path] })),
    )
  // The parents' patterns have no place in this request.
  const rules = [...rulesOf(inherited).map((rule) => ({ ...rule, place: ['policy'] })), ...rulesOf(own)]
  const problem = patternsProblem(rules.map(({ pattern }) => pattern))
  const rule = problem && rules[problem.at]
  if (problem === undefined || rule === undefined) return undefined
  return { place: placeOf(rule.place), message: problem.message }
}

/** Compiles the patterns of blocks in steps, so that `policyPatternProblem` finds them compiled. */
export function* compiling(blocks: readonly Block[]): Generator<number, void> {
  for (const { rpc = [] } of blocks)
    for (const { pattern } of rpc) {
      yield costToCompile(pattern)
      patternProblem(pattern)
    }
}

/** Bytes of memory for a character of a policy's JSON: parsed and as blocks, a short set of metadata takes 620. */
const policyBytesPerCharacter = 60

/** Estimates the bytes of memory that a policy takes, parsed and as blocks. */
export function policyBytes(policy: readonly Constraint[] = []): number {
  return policyBytesPerCharacter * JSON.stringify(policy).length
}

function within(place: string, problem: Problem): Problem {
  if (problem.place === '') return { place, message: problem.message }
  const joint = problem.place.startsWith('[') ? '' : '.'
  return { place: `${place}${joint}${problem.place}`, message: problem.message }
}

function list<T>(oneOrMany: T | T[]): readonly T[] {
  return Array.isArray(oneOrMany) ? oneOrMany : [oneOrMany]
}
