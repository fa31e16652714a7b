/** The words of the operations that explain policies, under `/tokens`. */

import * as model from '../../model/explain.ts'
import type { OperationId } from '../../operations.ts'
import type { Words } from './operation-words.ts'

const questionErrors = {
  400: 'The request or the policy cannot be read; the message says which part (`invalid_request`, `policy_too_large`)',
  403: 'The caller does not manage the organization of the policy',
  404: 'There is no such token that the caller may have explained',
}

export const policyWords = {
  explainToken: {
    summary: 'Explain what a token allows',
    description:
      'Says whether a request would be allowed, refused or depends on what is not described, with the verdict of every constraint. The subject is a `token`, a `policy` that the caller could mint with, or neither: the caller’s own credential. Nothing is changed, and no server is asked. Things that the caller cannot see look as if they did not exist.',
    body: model.ExplainRequest,
    example: {
      policy: [{ namespaces: 'acme', rpcReqMatch: { 'params.name': '^find_' } }],
      request: { namespace: 'acme', connection: 'crm', tool: 'find_account' },
    },
    answer: model.Explanation,
    errors: questionErrors,
  },
  lintPolicy: {
    summary: 'Find mistakes in a policy',
    description:
      'Says which constraints of a policy can never hold together, restrict nothing, or allow something else than was probably meant, compared with the connections, tools and calls that the caller sees. `searched` says how much was looked at; `complete` is false if something was not decided. The subject is as for `POST /tokens/explain`.',
    body: model.LintRequest,
    example: { policy: [{ namespaces: 'acme', rpcReqMatch: { 'params.name': '^find_' } }] },
    answer: model.LintAnswer,
    errors: questionErrors,
  },
  coverTools: {
    summary: 'List what a policy allows of each tool',
    description:
      'Gives the verdict of `POST /tokens/explain` on each tool that is known of each connection that the caller sees, in the order of namespace and id. `summary` counts all of them, and is on the first page only. `tools` is null where none are known. A cursor is bound to the caller, the subject and the namespace.',
    body: model.CoverageRequest,
    example: { policy: [{ rpcReqMatch: { 'params.name': '^find_' } }], namespace: 'acme' },
    answer: model.Coverage,
    errors: questionErrors,
  },
  diffPolicies: {
    summary: 'Find a request that a new policy allows and an old one refuses',
    description:
      'Compares two policies or tokens. `wider` comes with a request that the new one allows and the old one refuses, or with a longer lifetime. `not_wider_found` is not a proof: `searched` says what was tried.',
    body: model.DiffRequest,
    example: {
      old: { policy: [{ rpcReqMatch: { 'params.name': '^find_account$' } }] },
      new: { policy: [{ rpcReqMatch: { 'params.name': '^find_' } }] },
    },
    answer: model.Diff,
    errors: { 400: questionErrors[400], 404: questionErrors[404] },
  },
  suggestPolicy: {
    summary: 'Suggest a policy from the record of calls',
    description:
      'Makes a policy that allows every call that the caller’s key and its tokens made in the last days, or a token and those minted with it, and refuses every other tool and connection. `policy` is null where there is none, and a note says why.',
    body: model.SuggestRequest,
    example: { days: 7 },
    answer: model.Suggestion,
    errors: { 404: questionErrors[404] },
  },
} satisfies Partial<Record<OperationId, Words>>
