/** Recorded calls and audit entries, as the interface shows them (contract, 18.5). */

import { type Static, Type } from '@sinclair/typebox'
import { closedObject, nullable, oneOf } from '../schema/shapes.ts'

/**
 * How a call ended. `refused`: it never reached the server. `cancelled`: the answer did not reach the caller, who
 * disconnected, lost the right to it meanwhile, or has no share of memory left for it (`code`: `rate_limited`).
 */
export const callOutcomes = [
  ...(['ok', 'tool_error', 'rpc_error', 'refused'] as const),
  ...(['upstream_error', 'timeout', 'cancelled'] as const),
] as const
export type CallOutcome = (typeof callOutcomes)[number]

/** Where a call came in: at a connection, at a namespace, at a namespace by its search of tools, or at `.tools`. */
export const callEntrances = ['mcp', 'namespace', 'search', 'tools'] as const

/** A line, without number and hashes. Times in milliseconds, sizes in bytes. */
export const CallRecord = closedObject({
  requestId: Type.String(),
  userId: Type.String(),
  keyId: Type.String(),
  jti: Type.Optional(Type.String()),
  par: Type.Optional(Type.Readonly(Type.Array(Type.String()))),
  namespace: Type.String(),
  connectionId: Type.String(),
  /** The tool's own name. */
  tool: Type.String(),
  via: oneOf(callEntrances),
  /** The view of the namespace, if the call came to one. */
  view: Type.Optional(Type.String()),
  outcome: oneOf(callOutcomes),
  /** The JSON-RPC code, or the code of the platform's error. */
  code: Type.Optional(Type.Union([Type.Number(), Type.String()])),
  /** The constraint of the token that refused it, like `policy[0].rpcReqMatch.params.name`. */
  constraint: Type.Optional(Type.String()),
  ms: Type.Number(),
  bytesIn: Type.Integer(),
  bytesOut: Type.Integer(),
  /** A keyed hash of the arguments: the same for the same arguments. */
  args: Type.String(),
})
export type CallRecord = Static<typeof CallRecord>

export const ShownCall = closedObject({
  time: Type.String({ format: 'date-time' }),
  ...CallRecord.properties,
  /** Of one's own calls alone, but for operators. */
  args: Type.Optional(Type.String()),
  replica: Type.Optional(Type.String()),
})
const paging = { nextCursor: nullable(Type.String()), stopped: Type.Boolean() }
export const CallPage = closedObject({ calls: Type.Array(ShownCall), ...paging })

/** How many calls ended how, in equal steps of time. Milliseconds of those not refused; null: there were none. */
export const CallSeries = closedObject({
  steps: Type.Array(
    closedObject({
      at: Type.String({ format: 'date-time' }),
      ...{ ok: Type.Integer(), failed: Type.Integer(), refused: Type.Integer() },
      ...{ p50: nullable(Type.Number()), p95: nullable(Type.Number()), p99: nullable(Type.Number()) },
    }),
  ),
  stopped: Type.Boolean(),
})
export type CallSeries = Static<typeof CallSeries>

/** An entry has `seq`, `time`, `event`, `prev` and `hash`, and the fields of its event. */
export const AuditPage = closedObject({ entries: Type.Array(Type.Object({})), ...paging })

const verifiedLog = closedObject({
  replica: nullable(Type.String()),
  ...{ entries: Type.Integer(), first: Type.Integer(), last: Type.Integer() },
  /** Of the last entry. */
  hash: Type.String(),
})
export const AuditVerification = closedObject({
  ok: Type.Boolean(),
  problems: Type.Array(Type.String()),
  truncatedLines: Type.Array(Type.String()),
  logs: Type.Array(verifiedLog),
})
export type AuditVerification = Static<typeof AuditVerification>
