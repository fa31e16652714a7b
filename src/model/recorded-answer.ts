/** A recorded answer of a mocked connection (contract, 8 and 11.1). */

import { type Static, Type } from '@sinclair/typebox'
import { closedObject } from '../schema/shapes.ts'
import { QualifiedName } from './names.ts'

/** Ours: the longest delay of a recorded answer. Past it: a problem of the fixtures. */
const mockDelayMsMax = 60_000

/** An answer to calls whose arguments contain the given ones: objects may have more fields, the rest is equal. */
export const RecordedAnswer = closedObject({
  server: QualifiedName,
  tool: Type.String({ minLength: 1 }),
  arguments: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
  /** A tool result of MCP. */
  result: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
  error: Type.Optional(
    closedObject({ code: Type.Integer(), message: Type.String(), data: Type.Optional(Type.Unknown()) }),
  ),
  delayMs: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: mockDelayMsMax,
      errorMessage: `must be a whole number of milliseconds from 0 to ${mockDelayMsMax}`,
    }),
  ),
})
export type RecordedAnswer = Static<typeof RecordedAnswer>
