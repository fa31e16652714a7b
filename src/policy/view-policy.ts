/** The policy of a view, checked when it is written and narrowing what its callers may do (contract, 20.10). */

import type { Constraint } from '../model/constraint.ts'
import type { View } from '../model/view.ts'
import type { Problem } from '../schema/check.ts'
import { type Block, compiling, policyPatternProblem, readPolicy } from './block.ts'

/** The first problem of a policy as a view may have it, as work in steps. */
export function* viewPolicyProblem(policy: readonly Constraint[]): Generator<number, Problem | undefined> {
  const withTtl = policy.findIndex(({ ttl }) => ttl !== undefined)
  if (withTtl >= 0) return { place: `policy[${withTtl}].ttl`, message: 'a view has no lifetime' }
  if (policy.length === 0) return undefined
  const read = readPolicy(policy)
  if ('problem' in read) return read.problem
  yield* compiling(read.blocks)
  return policyPatternProblem([], read.blocks)
}

/** Whether two views, or one at two moments, narrow the same; undefined for none. */
export function narrowTheSame(a: Pick<View, 'policy'> | undefined, b: Pick<View, 'policy'> | undefined): boolean {
  return a === b || JSON.stringify(a?.policy) === JSON.stringify(b?.policy)
}

/** The blocks of a view's policy, named apart from the token's. Each narrows, so an unreadable one allows nothing. */
export function viewBlocks(policy: readonly Constraint[]): readonly Block[] {
  if (policy.length === 0) return []
  const read = readPolicy(policy)
  const blocks: readonly Block[] = 'problem' in read ? [{ operations: [] }] : read.blocks
  return blocks.map((block, index) => ({ ...block, name: `view.policy[${index}]` }))
}
