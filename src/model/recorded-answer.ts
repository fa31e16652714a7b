/** A recorded answer of a mocked connection (contract 7 and gateway, mocks). */

import { type Static, Type } from '@sinclair/typebox'
import { mockDelayMsMax } from '../limits.ts'
import { QualifiedName } from './names.ts'

const closed = { additionalProperties: false } as const

/** For calls whose arguments hold at least these values: objects at least these fields, everything else the same. */
export const RecordedAnswer = Type.Object(
  {
    server: QualifiedName,
    tool: Type.String({ minLength: 1 }),
    arguments: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
    /** A tool result as MCP has it. */
    result: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
    /** An error of JSON-RPC. */
    error: Type.Optional(
      Type.Object({ code: Type.Integer(), message: Type.String(), data: Type.Optional(Type.Unknown()) }, closed),
    ),
    /** Waited before the answer. */
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
