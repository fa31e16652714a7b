/** The whole verdict on a request, made of single decisions (contract, 21.2). */

import type { RequestContext } from '../../auth/authorizer.ts'
import type { SharedParts } from '../../auth/shared-parts.ts'
import { allowanceOf } from '../../fairness/allowance.ts'
import type {
  DescribedRequest,
  ExplainedConstraint,
  ExplainedOutside,
  Explanation,
  Verdict,
} from '../../model/explain.ts'
import type { Block } from '../../policy/block.ts'
import { connectionFieldsInOrder, type Field, fieldsInOrder, hiding, hidingConnection } from '../../policy/decide.ts'
import { explainingConstraints } from '../../policy/explain.ts'
import { type LookedAt, lookAt } from './described-request.ts'
import { type Explained, shownToken } from './subject.ts'

type Decided = ExplainedConstraint | ExplainedOutside

const severity: Readonly<Record<Verdict, number>> = { refuse: 0, depends: 1, allow: 2 }

/** The whole verdict on a request that is described. Throws as `lookAt`. */
export async function explainRequest(
  deps: Pick<SharedParts, 'store' | 'base'>,
  context: RequestContext,
  subject: Explained,
  described: DescribedRequest,
) {
  const looked = await lookAt(deps, context, subject, described) // 400, 429
  const { blocks } = subject.caller
  const constraints = await allowanceOf(context.request).run(explainingConstraints(blocks, looked.request)) // 429
  return { looked, explanation: explanationOf({ ...subject, blocks }, looked, constraints) }
}

/** The whole verdict: the deciding one is the one that a real refusal names. */
export function explanationOf(
  { blocks, inherited, token }: Pick<Explained, 'inherited' | 'token'> & { readonly blocks: readonly Block[] },
  { outside, isAboutConnection }: Pick<LookedAt, 'outside' | 'isAboutConnection'>,
  constraints: readonly ExplainedConstraint[],
): Omit<Explanation, 'notes'> {
  const stages = stagesOf(isAboutConnection)
  const worst = decidingOf(isAboutConnection, outside, constraints)
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
      // Of the same verdict, they stay in their order.
      const own = (ofBlock.get(block) ?? []).sort((a, b) => severity[a.verdict] - severity[b.verdict])
      return { block, inherited: block < inherited, verdict: own[0]?.verdict ?? 'allow', constraints: own }
    }),
    token: token === undefined ? null : shownToken(token),
  }
}

function stagesOf(isAboutConnection: boolean): string[] {
  const fields = [...(isAboutConnection ? connectionFieldsInOrder : fieldsInOrder), 'rpcReqMatch']
  const decided = fields.flatMap((field) => (field === 'namespaces' ? [field, 'connection'] : [field]))
  return ['token', 'reach', ...decided, 'lead']
}

/** The worst of all decisions; of the same verdict, the one that a real refusal names. Undefined if there are none. */
export function decidingOf(
  isAboutConnection: boolean,
  outside: readonly ExplainedOutside[],
  constraints: readonly ExplainedConstraint[],
): Decided | undefined {
  const stages = stagesOf(isAboutConnection)
  const stageOf = (one: Decided) => stages.indexOf('field' in one ? one.field : one.place)
  let worst: Decided | undefined
  for (const one of [...outside, ...constraints]) {
    const later =
      worst === undefined ? -1 : severity[one.verdict] - severity[worst.verdict] || stageOf(one) - stageOf(worst)
    if (later < 0) worst = one
  }
  return worst
}

function statusOf(one: Decided, hides: ReadonlySet<Field>): 401 | 403 | 404 {
  if ('field' in one) return hides.has(one.field as Field) ? 404 : 403
  return one.place === 'token' ? 401 : one.place === 'lead' ? 403 : 404
}

function wordsOf(worst: Decided | undefined, status: number | null): string {
  if (worst === undefined || worst.verdict === 'allow') return 'Allowed: nothing refuses it.'
  if (worst.verdict === 'refuse') return `Refused by ${worst.place}: ${status}.`
  return `It depends on ${worst.missing.join(' and ')}: see ${worst.place}.`
}
