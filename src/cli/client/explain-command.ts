/** `postern token explain` over HTTP: what the platform says about a token, a policy or the own credential. */

import { unverifiedClaims } from '../../auth/service-token.ts'
import { CommandError } from '../../errors.ts'
import { rpcDepthMax } from '../../limits.ts'
import { Explanation } from '../../model/explain.ts'
import { readJsonFile, readToken } from '../json-input.ts'
import { describedBy, type ExplainFlags, notToken } from '../token-explain.ts'
import type { CommandContext } from './context.ts'

const nothingNamed = 'This is your own credential. Name a request to explain, like: -n NAMESPACE --tool CONNECTION.TOOL'

/** Said of a token that the server explains to nobody who asks so: it does not say why. */
const unknownToken =
  'the server does not explain this token to you: it belongs to another user, or another postern signed it, or a key that is revoked'

/** Resolves with the exit code: 1 if the described request is refused, or a token is not good any more. */
export async function explainToken(
  { flags, request, say }: CommandContext<Omit<ExplainFlags, 'data'>>,
  given: string | undefined,
): Promise<0 | 1> {
  const { policy } = flags
  const named = given === undefined ? undefined : readToken(given)
  if (named !== undefined && unverifiedClaims(named) === undefined) throw new CommandError(notToken)
  const described = describedBy(flags)
  const body = {
    token: named,
    policy: policy === undefined ? undefined : [readJsonFile(policy, rpcDepthMax)].flat(),
    request: described,
  }
  const explained = await request('POST', '/tokens/explain', {
    body,
    reads: Explanation,
    ...(named !== undefined && { missing: unknownToken }),
  })
  const { verdict, words, outside, blocks, token, notes } = explained
  const decided = [...outside, ...blocks.flatMap(({ constraints }) => constraints)]
  const lines = [
    ...(token === null ? [] : [`Token ${token.jti} acts for ${token.userId} (${token.keyId}); it is ${token.state}`]),
    ...decided.map((one) => `  ${one.verdict.padEnd(8)} ${one.place}  ${one.words}`),
    ...(described === undefined ? [] : [words]),
    ...(described === undefined && token === null && policy === undefined ? [nothingNamed] : []),
    ...notes.map((note) => `Note: ${note.words}`),
  ]
  for (const line of flags.json === true ? [''] : lines) say(explained, line)
  const isOver = named !== undefined && token !== null && token.state !== 'active'
  return isOver || (verdict === 'refuse' && described !== undefined) ? 1 : 0
}
