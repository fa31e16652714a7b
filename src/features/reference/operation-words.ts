/** The OpenAPI document's words about an operation, beyond the table of operations. */

import type { TSchema } from '@sinclair/typebox'

/**
 * The facts about an operation that the table of operations does not have. `errors` has the meaning of each error
 * status.
 */
export interface Words {
  readonly summary: string
  readonly description: string
  /** True: needs no credential. */
  readonly open?: boolean
  readonly parameters?: readonly object[]
  readonly body?: TSchema
  /** An example of the request body. */
  readonly example?: object
  readonly answer: TSchema
  /** The status of success; 200 if left out. */
  readonly status?: number
  /** The other statuses of success: what each says, and whether its body is `answer` or there is none. */
  readonly otherStatuses?: Readonly<Record<number, { readonly description: string; readonly hasBody: boolean }>>
  /** The body of errors, where it is not the one that the table of operations implies. */
  readonly error?: TSchema
  readonly errors: Readonly<Record<number, string>>
}

export const denied = {
  401: 'The API key or token is missing or invalid',
  429: 'Too many invalid credentials from this address, or this caller’s rate or share is used up; `retry-after` says when to try again',
  503: 'The store cannot be used right now',
}
/** The meaning of each 400. */
export const badRequest = 'The request cannot be read; the message names the place'
/** A query parameter that is on or off. */
export const flag = { type: 'string', enum: ['0', '1', 'true', 'false'] }
export const path = (name: string, description: string) => ({
  name,
  in: 'path',
  required: true,
  description,
  schema: { type: 'string' },
})
export const query = (name: string, description: string, schema: object = { type: 'string' }) => ({
  name,
  in: 'query',
  description,
  schema,
})
