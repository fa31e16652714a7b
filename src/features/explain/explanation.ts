/** The whole verdict on a request, made of single decisions (contract, 21.2). */

import type { ExplainedConstraint, ExplainedOutside, Explanation, Verdict } from '../../model/explain.ts'
import type { Block } from '../../policy/block.ts'
import { connectionFieldsInOrder, type Field, fieldsInOrder, hiding, hidingConnection } from '../../policy/decide.ts'
import type { LookedAt } from './described-request.ts'
import { type Explained, shownToken } from './subject.ts'

type Decided = ExplainedConstraint | ExplainedOutside

const severity: Readonly<Record<Verdict, number>> = { refuse: 0, depends: 1, allow: 2 }
/** Of the same verdict, they stay in their order. */
const worstFirst = <T extends { readonly verdict: Verdict }>(all: readonly T[]): T[] =>
  all.toSorted((a, b) => severity[a.verdict] - severity[b.verdict])

interface ExplainedPolicy extends Pick<Explained, 'inherited' | 'token'> {
  readonly blocks: readonly Block[]
}

/** The whole verdict: the deciding one is the one that a real refusal names. */
export function explanationOf(
  { blocks, inherited, token }: ExplainedPolicy,
  { outside, isAboutConnection }: Pick<LookedAt, 'outside' | 'isAboutConnection'>,
  constraints: readonly ExplainedConstraint[],
): Omit<Explanation, 'notes'> {
  const order = isAboutConnection ? connectionFieldsInOrder : fieldsInOrder
  const inOrder = [...order, 'rpcReqMatch' as const]
  const stages = [
    ...['token', 'reach'],
    ...inOrder.flatMap((field) => (field === 'namespaces' ? [field, 'connection'] : [field])),
    'lead',
  ]
  const stageOf = (one: Decided) => ('field' in one ? one.field : one.place)
  const decidedInOrder = stages.flatMap((stage): Decided[] =>
    [...outside, ...constraints].filter((one) => stageOf(one) === stage),
  )
  const [worst] = worstFirst(decidedInOrder)
  const ofBlock = Map.groupBy(
    constraints.toSorted((a, b) => stages.indexOf(a.field) - stages.indexOf(b.field)),
    ({ block }) => block,
  )
  const verdict = worst?.verdict ?? 'allow'
  const hides = isAboutConnection ? hidingConnection : hiding
  const status = worst === undefined || verdict !== 'refuse' ? null : statusOf(worst, hides)
  return {
    verdict,
    status,
    words: wordsOf(worst, status),
    decidedBy: worst === undefined || verdict === 'allow' ? null : worst,
    outside: [...outside],
    blocks: blocks.map((_, block) => {
      const own = worstFirst(ofBlock.get(block) ?? [])
      return { block, inherited: block < inherited, verdict: own[0]?.verdict ?? 'allow', constraints: own }
    }),
    token: token === undefined ? null : shownToken(token),
  }
}

/** The status of a real refusal. */
function statusOf(one: Decided, hides: ReadonlySet<Field>): 401 | 403 | 404 {
  if ('field' in one) return hides.has(one.field as Field) ? 404 : 403
  return one.place === 'token' ? 401 : one.place === 'lead' ? 403 : 404
}

function wordsOf(worst: Decided | undefined, status: number | null): string {
  if (worst === undefined || worst.verdict === 'allow') return 'Allowed: nothing refuses it.'
  if (worst.verdict === 'refuse') return `Refused by ${worst.place}: ${status}.`
  return `It depends on ${worst.missing.join(' and ')}: see ${worst.place}.`
}
