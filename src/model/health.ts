/** How well connections are, and what somebody can do about it (contract, 22). */

import { type Static, Type } from '@sinclair/typebox'
import { closedObject, nullable, oneOf } from '../schema/shapes.ts'
import { ConnectionId, Slug } from './names.ts'
import { ShownCall } from './recorded-call.ts'

/** `unknown`: nobody has contacted it, or not lately. */
export const healthLevels = ['ok', 'attention', 'down', 'unknown', 'off'] as const

/** The one thing that would help: a page for a person, or a request. */
const kind = oneOf(['sign-in', 'input', 'test', 'review-pins', 'dial'])
const HealthAction = Type.Union([
  closedObject({ kind, label: Type.String(), href: Type.String() }),
  closedObject({ kind, label: Type.String(), method: oneOf(['GET', 'POST']), path: Type.String() }),
])
export type HealthAction = Static<typeof HealthAction>

const health = {
  connectionId: ConnectionId,
  level: oneOf(healthLevels),
  summary: Type.String(),
  /** Since when it is so; null if that is not known. */
  since: nullable(Type.String({ format: 'date-time' })),
  action: nullable(HealthAction),
}
export const Health = closedObject(health)
export type Health = Static<typeof Health>

export const HealthPage = closedObject({ connections: Type.Array(Health), nextCursor: nullable(Type.String()) })
export type HealthPage = Static<typeof HealthPage>

const count = Type.Integer()
export const Overview = closedObject({
  connections: closedObject({
    ...{ total: count, ok: count, attention: count, down: count, unknown: count, off: count },
    /** Whether all were counted. */
    complete: Type.Boolean(),
  }),
  /** Those that need attention: the first twenty. */
  attention: Type.Array(closedObject({ namespace: Slug, ...health })),
  /** Those that the caller may read, of the last hour. Null without a record of calls, or if the store fails. */
  calls: nullable(
    closedObject({
      since: Type.String({ format: 'date-time' }),
      ...{ ok: count, failed: count, refused: count },
      complete: Type.Boolean(),
    }),
  ),
  store: closedObject({
    ok: Type.Boolean(),
    /** For operators. */
    kind: Type.Optional(oneOf(['embedded', 'postgresql'])),
    freeBytes: Type.Optional(count),
    /** In place of the free bytes, if the store cannot be used. */
    problem: Type.Optional(Type.String()),
  }),
  version: Type.String(),
  /** Only where the server calls mocks of the sample itself. */
  sampleTraffic: Type.Optional(Type.Literal(true)),
})
export type Overview = Static<typeof Overview>

/** One call: its line, its connection now, and for operators the entries of the audit log about its request. */
export const CallStory = closedObject({
  call: ShownCall,
  connection: nullable(Health),
  audit: Type.Array(Type.Object({})),
})
export interface CallStory {
  readonly call: object
  readonly connection: Health | null
  readonly audit: readonly object[]
}
