/** The bodies of the console's session (contract, 23.2). */

import { type Static, Type } from '@sinclair/typebox'
import { closedObject, nullable } from '../schema/shapes.ts'

export const StartConsoleSession = closedObject({ key: Type.String({ minLength: 1 }) })

export const ConsoleSessionBody = closedObject({
  userId: Type.String(),
  operator: Type.Boolean(),
  key: closedObject({ id: Type.String(), name: nullable(Type.String()) }),
  csrf: Type.String(),
  expiresAt: Type.String({ format: 'date-time' }),
})
export type ConsoleSessionBody = Static<typeof ConsoleSessionBody>
