/** The OpenAPI document's words about an operation, beyond the table of operations. */

import type { TSchema } from '@sinclair/typebox'

/** The facts about an operation that the table of operations does not have. */
export interface Words {
  readonly summary: string
  readonly description: string
  /** True: needs no credential, and answers no error but its own `errors`. */
  readonly open?: boolean
  /** True: the credential is the cookie of a console's session. It answers no error but its own `errors`. */
  readonly bySession?: boolean
  /** Those of its query. */
  readonly parameters?: readonly Parameter[]
  readonly body?: TSchema
  readonly example?: object
  /** The body of 200, where that is answered. */
  readonly answer?: TSchema
  /** The words of 200, where that is a stream of events. */
  readonly stream?: string
  /** The body of 201, where something may be made. */
  readonly made?: TSchema
  /** The words of 202, and its body if it has one. */
  readonly accepted?: { readonly description: string; readonly body?: TSchema }
  /** The meaning of each error status, where it is another than in `commonErrors`. */
  readonly errors?: Readonly<Record<number, string>>
}

/** A parameter of an operation, as OpenAPI has it. */
export interface Parameter {
  readonly name: string
  readonly in: 'path' | 'query'
  readonly description: string
  readonly schema: object
  readonly required?: boolean
  readonly style?: string
}

/** The meanings of the statuses that every operation with a credential may answer. */
export const commonErrors: Readonly<Record<number, string>> = {
  400: 'The request cannot be read; the message says which part',
  401: 'The API key or token is missing or invalid',
  429: 'Too many invalid credentials came from this address, or this caller has used up its rate or its share; `retry-after` says when to try again',
  503: 'The store cannot be used right now',
}

/** The parameters in paths, by their names in the table of operations. */
const pathParameters: Readonly<Record<string, string>> = {
  namespace: 'The namespace',
  connectionId: 'The connection',
  requestId: 'The id of the request',
  tool: 'The name of the tool',
  qualifiedName: '`namespace/server`, or `namespace` alone',
  view: 'The view',
  id: '`deploymentId` of the release',
  serverName: 'The server’s name in the registry, with the slash as `%2F`',
  version: 'The version, or `latest`',
  organizationId: 'The organization',
  userId: 'The member',
  keyId: 'The key',
  grantId: 'The grant',
  linkId: 'The link',
}

export const flag = { type: 'string', enum: ['0', '1', 'true', 'false'] }
export const time = { type: 'string', format: 'date-time' }
/** A query parameter that is a number in these bounds. */
export const integer = (minimum: number, maximum: number | undefined, standard: number) => ({
  type: 'integer',
  minimum,
  ...(maximum !== undefined && { maximum }),
  default: standard,
})

/** The parameters in the path of an operation, in its order. */
export function parametersIn(template: string): Parameter[] {
  return [...template.matchAll(/\{\+?(\w+)\}/g)].map(([, name = '']) => ({
    name,
    in: 'path',
    required: true,
    description: pathParameters[name] ?? '',
    schema: { type: 'string' },
  }))
}

export function query(name: string, description: string, schema: object = { type: 'string' }): Parameter {
  return { name, in: 'query', description, schema }
}

/** The parameters of a list in numbered pages. `things`: plural, with a capital. */
export const pages = (things: string, most: number, standard = most) => [
  query('page', 'The number of the page, from 1', integer(1, undefined, 1)),
  query('pageSize', `${things} on a page`, integer(1, most, standard)),
]
