/** A recorded answer of a mocked connection (contract 7 and gateway, mocks). */

import { type Static, Type } from '@sinclair/typebox'
import { QualifiedName } from './names.ts'

/** Ours: the longest delay of a recorded answer. Past it: a problem of the fixtures. */
const mockDelayMsMax = 60_000

const closed = { additionalProperties: false } as const

/**
 * An answer for calls whose arguments contain at least the given values: objects may have more fields, everything else
 * must be equal.
 */
export const RecordedAnswer = Type.Object(
  {
    server: QualifiedName,
    tool: Type.String({ minLength: 1 }),
    arguments: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
    /** A tool result of MCP. */
    result: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
    /** A JSON-RPC error. */
    error: Type.Optional(
      Type.Object({ code: Type.Integer(), message: Type.String(), data: Type.Optional(Type.Unknown()) }, closed),
    ),
    /** Delay before the response. */
    delayMs: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: mockDelayMsMax,
        errorMessage: `must be a whole number of milliseconds from 0 to ${mockDelayMsMax}`,
      }),
    ),
  },
  closed,
)
export type RecordedAnswer = Static<typeof RecordedAnswer>
