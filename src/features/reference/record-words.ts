/** The OpenAPI words for health, records, events and the console's session. */

import { listPageMax } from '../../limits.ts'
import { auditEvents } from '../../model/audit-event.ts'
import { Deleted } from '../../model/connection.ts'
import { ConsoleSessionBody, StartConsoleSession } from '../../model/console.ts'
import { CallStory, Health, HealthPage, Overview } from '../../model/health.ts'
import * as model from '../../model/recorded-call.ts'
import { SigningKeyList } from '../../model/token.ts'
import type { OperationId } from '../../operations.ts'
import { commonErrors, flag, integer, query, time, type Words } from './operation-words.ts'

const callFilters = [
  query('namespace', 'Calls in this namespace'),
  query('connection', 'Calls through this connection: its id, or `NAMESPACE/ID`'),
  query('tool', 'Calls of this tool'),
  query('user', 'Calls by this user'),
  query('token', 'Calls with the token of this id, or with a token minted with it'),
  query('outcome', 'Calls with this outcome', { type: 'string', enum: [...model.callOutcomes] }),
  query('via', 'Calls that came in at a connection, at a namespace, by its search, or with `.tools`', {
    type: 'string',
    enum: [...model.callEntrances],
  }),
]
const page = [
  query('since', 'Not before this time', time),
  query('until', 'Not after this time', time),
  query('limit', 'Items on a page', integer(1, listPageMax, listPageMax)),
  query('cursor', '`nextCursor` of the page before'),
]
const narrowed =
  'A request reads at most 100,000 lines. If a page ends early because of that, it says so in `stopped`: continue with `nextCursor`. ' +
  'With several replicas, each replica answers from its own file.'
const sessionErrors = { 401: 'There is no session', 503: commonErrors[503] ?? '' }
const operatorErrors = { 403: 'The caller is not an operator with an API key' }

export const recordWords: Readonly<Partial<Record<OperationId, Words>>> = {
  listCalls: {
    summary: 'List recorded calls of tools',
    description:
      'Lists the newest calls first. You see your own calls, and the calls in the namespaces that you manage; operators see all calls. ' +
      `The \`namespaces\` and \`metadata\` of a token’s policy narrow the list. ${narrowed}`,
    parameters: [...callFilters, ...page],
    answer: model.CallPage,
  },
  countCalls: {
    summary: 'Count recorded calls over time',
    description:
      'Counts the calls that the caller may read in equal steps: how they ended, and the percentiles of their milliseconds without the refused ones. A step without calls has null there. ' +
      narrowed,
    parameters: [
      query('since', 'Begin here (default: an hour before `until`)', time),
      query('until', 'End here (default: now)', time),
      query('step', 'Seconds of a step; at most 500 steps are counted', integer(1, 86_400, 60)),
      ...callFilters,
    ],
    answer: model.CallSeries,
  },
  getCall: {
    summary: 'Get one recorded call',
    description:
      'Gives the call of a request (the `x-request-id` of its answer; a client may repeat one, so name the time and the tool too), the health of its connection now, and for operators the entries of the audit log about the same request.',
    parameters: [query('time', 'The `time` of the call'), query('tool', 'The `tool` of the call')],
    answer: CallStory,
    errors: { 404: 'There is no such call that the caller may read' },
  },
  listHealth: {
    summary: 'List the health of connections',
    description:
      'Lists the connections that need attention, or with `ids` the health of these, with the one action that would help. Connections that the caller cannot see are left out. `unknown` means that nobody contacted the server for a day.',
    parameters: [
      query('ids', 'These connections: up to 100 ids with commas between them'),
      query('limit', 'Connections on a page', integer(1, 100, 100)),
      query('cursor', '`nextCursor` of the page before'),
    ],
    answer: HealthPage,
    errors: {
      403: 'The policy does not allow to read connections',
      404: 'There is no such namespace that the caller sees',
    },
  },
  testConnection: {
    summary: 'Test a connection',
    description: 'Contacts the server of a connection once, notes its status, and answers its health.',
    answer: Health,
    errors: { 403: 'The policy does not allow to call it', 404: 'There is no such connection that the caller sees' },
  },
  getOverview: {
    summary: 'Get an overview',
    description:
      'Counts the connections that the caller may read by their health, and its calls of the last hour, and lists the first connections that need attention.',
    answer: Overview,
  },
  listenEvents: {
    summary: 'Listen to events',
    description:
      'Tells of what happens, as far as the caller may see it: `call` has a line of the list of calls, `connection` the health of a connection, `client` the first request of a client at a connection in ten minutes, and `audit`, for operators, an entry of the audit log. ' +
      'Each event has an `id`; with `Last-Event-ID` the stream continues behind it. `gap` says that events are missing. A server without a console answers 404.',
    parameters: [
      query('namespace', 'Events of this namespace'),
      query('types', 'These types, with commas between them (default: all)'),
    ],
    stream: 'Events, as they happen',
    errors: {
      429: 'This key, or everybody together, listens too often; or too many invalid credentials came from this address',
    },
  },
  startConsoleSession: {
    summary: 'Sign in to the console',
    description:
      'Sets the cookie of a session of 12 hours with the rights of an API key. postern accepts the cookie instead of `authorization` where the request has `sec-fetch-site: same-origin` and, unless it is GET, the header `x-postern-csrf` with `csrf`; never at the MCP endpoints.',
    open: true,
    body: StartConsoleSession,
    example: { key: 'pst_…' },
    answer: ConsoleSessionBody,
    errors: {
      400: 'The body has no key',
      401: 'The key is not good, or is a service token',
      429: 'This user signs in too often, or too many invalid keys came from this address',
      503: commonErrors[503] ?? '',
    },
  },
  getConsoleSession: {
    summary: 'Read the session of the console',
    description: 'Returns the user, the name of the key, and `csrf`, which the session’s writes send.',
    bySession: true,
    answer: ConsoleSessionBody,
    errors: sessionErrors,
  },
  endConsoleSession: {
    summary: 'Sign out of the console',
    description: 'Ends the session in all tabs.',
    parameters: [query('everywhere', 'End all sessions of this key', flag)],
    bySession: true,
    answer: Deleted,
    errors: sessionErrors,
  },
  listSigningKeys: {
    summary: 'List signing keys',
    description:
      'Operators only. Lists the keys that sign tokens, with the next one and those that are still accepted.',
    answer: SigningKeyList,
    errors: operatorErrors,
  },
  rotateSigningKeys: {
    summary: 'Rotate signing keys',
    description: 'Operators only. The next key signs from now on. Tokens of the former one stay valid.',
    answer: SigningKeyList,
    errors: { ...operatorErrors, 409: 'Verifiers may not know the next key yet; the message says when to try again' },
  },
  listAudit: {
    summary: 'List the audit log',
    description: `Operators only. Lists the newest entries first. ${narrowed}`,
    parameters: [
      query('event', 'Entries of this event', { type: 'string', enum: [...auditEvents] }),
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
