/** The details of a registered server (spec 2.7 to 2.11; contract 6). */

import { type Static, type TSchema, Type } from '@sinclair/typebox'
import type { Problem } from '../schema/check.ts'
import { Url, urlProblem } from './connection.ts'
import { QualifiedName } from './names.ts'

const closed = { additionalProperties: false } as const

function nullable<T extends TSchema>(schema: T) {
  return Type.Union([schema, Type.Null()])
}

/** A server's own JSON Schema: any object, passed through unchanged. */
const JsonSchema = Type.Record(Type.String(), Type.Unknown())

export const ConnectionOption = Type.Union([
  Type.Object(
    {
      type: Type.Literal('stdio'),
      bundleUrl: Type.String(),
      runtime: Type.Union([Type.Literal('node'), Type.Literal('python'), Type.Literal('binary'), Type.Literal('bun')]),
      configSchema: JsonSchema,
    },
    closed,
  ),
  Type.Object({ type: Type.Literal('http'), deploymentUrl: Url, configSchema: JsonSchema }, closed),
])

export const Tool = Type.Object(
  {
    name: Type.String({ minLength: 1 }),
    description: nullable(Type.String()),
    inputSchema: Type.Object({ type: Type.Literal('object') }, { additionalProperties: true }),
    outputSchema: Type.Optional(Type.Object({ type: Type.Literal('object') }, { additionalProperties: true })),
  },
  closed,
)

export const Resource = Type.Object(
  {
    name: Type.String(),
    uri: Type.String(),
    description: Type.Optional(Type.String()),
    mimeType: Type.Optional(Type.String()),
  },
  closed,
)

export const Prompt = Type.Object(
  {
    name: Type.String({ minLength: 1 }),
    description: Type.Optional(Type.String()),
    arguments: Type.Optional(
      Type.Array(
        Type.Object(
          {
            name: Type.String(),
            description: Type.Optional(Type.String()),
            required: Type.Optional(Type.Boolean()),
          },
          closed,
        ),
      ),
    ),
  },
  closed,
)

/** Every field is always present; nullable ones may be null. */
export const ServerDetail = Type.Object(
  {
    qualifiedName: QualifiedName,
    displayName: Type.String(),
    description: Type.String(),
    iconUrl: nullable(Type.String()),
    remote: Type.Boolean(),
    deploymentUrl: nullable(Url),
    connections: Type.Array(ConnectionOption),
    security: nullable(Type.Object({ scanPassed: Type.Boolean() }, closed)),
    tools: nullable(Type.Array(Tool)),
    resources: nullable(Type.Array(Resource)),
    prompts: nullable(Type.Array(Prompt)),
  },
  closed,
)
export type ServerDetail = Static<typeof ServerDetail>

/** The first URL of a server to which no connection could be made, or undefined. */
export function serverUrlProblem({
  deploymentUrl,
  connections,
}: Pick<ServerDetail, 'deploymentUrl' | 'connections'>): Problem | undefined {
  const urls = connections.map((option, index) => ({
    place: `connections[${index}].deploymentUrl`,
    url: option.type === 'http' ? option.deploymentUrl : null,
  }))
  for (const { place, url } of [{ place: 'deploymentUrl', url: deploymentUrl }, ...urls]) {
    const message = url === null ? undefined : urlProblem(url)
    if (message !== undefined) return { place, message }
  }
  return undefined
}
