/** Which recorded calls are wanted: for `postern calls` and `GET /calls` alike. */

import type { CallRecord } from '../model/recorded-call.ts'
import { recordedTool } from './call-log.ts'

/** A line of the record. Another version may have written it. */
export type RecordedCall = Partial<CallRecord> & { readonly event?: string; readonly time?: string }

/** Each that is given must match. */
export interface CallFilter {
  readonly requestId?: string | undefined
  readonly namespace?: string | undefined
  /** The id alone, or `NAMESPACE/ID`. */
  readonly connection?: string | undefined
  readonly tool?: string | undefined
  readonly user?: string | undefined
  /** The id of a token (`jti`): calls with it, and with those minted with it. */
  readonly token?: string | undefined
  readonly outcome?: string | undefined
  readonly via?: string | undefined
  /** See `argumentsHash`. */
  readonly args?: string | undefined
  /** Milliseconds since 1970. */
  readonly since?: number | undefined
  readonly until?: number | undefined
}

export function matchesCall(wanted: CallFilter): (call: RecordedCall) => boolean {
  const { connection, token, since = Number.NEGATIVE_INFINITY, until = Number.POSITIVE_INFINITY } = wanted
  const same = (one: string | undefined, is: string | undefined) => one === undefined || one === is
  return (call) => {
    const time = Date.parse(call.time ?? '')
    return (
      same(wanted.requestId, call.requestId) &&
      same(wanted.namespace, call.namespace) &&
      (same(connection, call.connectionId) || connection === `${call.namespace}/${call.connectionId}`) &&
      same(wanted.tool && recordedTool(wanted.tool), call.tool) &&
      same(wanted.user, call.userId) &&
      (token === undefined || token === call.jti || call.par?.includes(token) === true) &&
      same(wanted.outcome, call.outcome) &&
      same(wanted.via, call.via) &&
      same(wanted.args, call.args) &&
      !(time < since || time > until)
    )
  }
}
