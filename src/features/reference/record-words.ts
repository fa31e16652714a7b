/** The OpenAPI words for what is recorded: calls of tools, and the audit log. */

import { listPageMax } from '../../limits.ts'
import * as model from '../../model/recorded-call.ts'
import type { OperationId } from '../../operations.ts'
import { integer, query, type Words } from './operation-words.ts'

/** Schemas by their name in the document. */
export const recordSchemas = {
  CallPage: model.CallPage,
  AuditPage: model.AuditPage,
  AuditVerification: model.AuditVerification,
}

const time = { type: 'string', format: 'date-time' }
const page = [
  query('since', 'Not before this time', time),
  query('until', 'Not after this time', time),
  query('limit', 'Items on a page', integer(1, listPageMax, listPageMax)),
  query('cursor', '`nextCursor` of the page before'),
]
const narrowed =
  'A request reads at most 100,000 lines. If a page ends early because of that, it says so in `stopped`: continue with `nextCursor`. ' +
  'With several replicas, each replica answers from its own file.'
const operatorErrors = { 403: 'The caller is not an operator with an API key' }

export const recordWords: Readonly<Partial<Record<OperationId, Words>>> = {
  listCalls: {
    summary: 'List recorded calls of tools',
    description:
      'Lists the newest calls first. You see your own calls, and the calls in the namespaces that you manage; operators see all calls. ' +
      `The \`namespaces\` and \`metadata\` of a token’s policy narrow the list. ${narrowed}`,
    parameters: [
      query('namespace', 'Calls in this namespace'),
      query('connection', 'Calls through this connection: its id, or `NAMESPACE/ID`'),
      query('tool', 'Calls of this tool'),
      query('user', 'Calls by this user'),
      query('token', 'Calls with the token of this id, or with a token minted with it'),
      query('outcome', 'Calls with this outcome', { type: 'string', enum: [...model.callOutcomes] }),
      query('via', 'Calls over MCP, or with `.tools`', { type: 'string', enum: ['mcp', 'tools'] }),
      ...page,
    ],
    answer: model.CallPage,
  },
  listAudit: {
    summary: 'List the audit log',
    description: `Operators only. Lists the newest entries first. ${narrowed}`,
    parameters: [
      query('event', 'Entries of this event, like `key.created`'),
      query('user', 'Entries of this user'),
      ...page,
    ],
    answer: model.AuditPage,
    errors: operatorErrors,
  },
  verifyAudit: {
    summary: 'Check the audit log',
    description:
      'Operators only. Says whether any line of the file was changed, removed or inserted, and shows the hash of the last entry. Keep that hash in another place.',
    parameters: [query('hash', 'Also check that the entry with this hash exists')],
    answer: model.AuditVerification,
    errors: operatorErrors,
  },
}
