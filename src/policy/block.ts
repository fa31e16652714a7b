/**
 * A policy as it is decided with: each constraint read into one independent attenuation block, its
 * one-or-many fields made lists. Reading is total: a policy that is not understood is an error, so
 * nothing later meets a field it does not know.
 */

import { type Constraint, type OperationKind, Policy, type ResourceType } from '../model/constraint.ts'
import { type Problem, placeOf, validatorOf } from '../schema/check.ts'
import { readTtl } from './duration.ts'
import { patternsProblem } from './patterns.ts'
import { pathProblem, type RpcRule } from './rpc-match.ts'

/** An absent field does not restrict. A present list is never empty. */
export interface Block {
  readonly namespaces?: readonly string[]
  readonly resources?: readonly ResourceType[]
  readonly operations?: readonly OperationKind[]
  /** Any of the sets must hold; a set holds when all its pairs do. */
  readonly metadata?: readonly MetadataSet[]
  readonly ttlSeconds?: number
  readonly rpc?: readonly RpcRule[]
}

export type MetadataSet = readonly (readonly [key: string, value: string])[]

/** The shape has been checked; what is left is what a shape cannot say. Places begin at the constraint. */
export function readConstraint(constraint: Constraint): { block: Block } | { problem: Problem } {
  const { namespaces, resources, operations, metadata, ttl, rpcReqMatch } = constraint
  let ttlSeconds: number | undefined
  if (ttl !== undefined) {
    const read = readTtl(ttl)
    if ('message' in read) return { problem: { place: 'ttl', message: read.message } }
    ttlSeconds = read.seconds
  }
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
      ...(ttlSeconds !== undefined && { ttlSeconds }),
      ...(rpc.length > 0 && { rpc }),
    },
  }
}

const policyShape = validatorOf(Policy)

/** A policy from outside: its blocks, or the first problem, placed like `policy[0].ttl`. Patterns are not looked at. */
export function readPolicy(policy: unknown): { blocks: Block[] } | { problem: Problem } {
  if (!policyShape.isValid(policy)) {
    const [problem = { place: '', message: 'is not a policy' }] = policyShape.problems(policy, 1)
    return { problem: within('policy', problem) }
  }
  const blocks: Block[] = []
  for (const [index, constraint] of policy.entries()) {
    const read = readConstraint(constraint)
    if ('problem' in read) return { problem: within(`policy[${index}]`, read.problem) }
    blocks.push(read.block)
  }
  return { blocks }
}

/**
 * The first pattern that will not do, alone or with those before it. Compiling takes time, so this comes after all that
 * could refuse the policy sooner.
 */
export function policyPatternProblem(inherited: readonly Block[], own: readonly Block[]): Problem | undefined {
  const rulesOf = (blocks: readonly Block[]) =>
    blocks.flatMap(({ rpc = [] }, index) =>
      rpc.map(({ path, pattern }) => ({ pattern, place: ['policy', index, 'rpcReqMatch', path] })),
    )
  // The parent's are at no place in this request.
  const rules = [...rulesOf(inherited).map((rule) => ({ ...rule, place: ['policy'] })), ...rulesOf(own)]
  const problem = patternsProblem(rules.map(({ pattern }) => pattern))
  const rule = problem && rules[problem.at]
  if (problem === undefined || rule === undefined) return undefined
  return { place: placeOf(rule.place), message: problem.message }
}

function within(place: string, problem: Problem): Problem {
  if (problem.place === '') return { place, message: problem.message }
  const joint = problem.place.startsWith('[') ? '' : '.'
  return { place: `${place}${joint}${problem.place}`, message: problem.message }
}

function list<T>(oneOrMany: T | T[]): readonly T[] {
  return Array.isArray(oneOrMany) ? oneOrMany : [oneOrMany]
}
