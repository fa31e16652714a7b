/** Defaults for the fields that a fixture may leave out, as the contract defines them (11.1). */

import type { Connection } from '../../model/connection.ts'
import { fieldsOf, ServerDetail } from '../../model/server.ts'
import type { FixtureConnection, FixtureFile } from './fixture-schema.ts'

const absent = { iconUrl: null, deploymentUrl: null, security: null, resources: null, prompts: null }

/** The full server record. The order of fields is the order in responses. */
export function completeServer(server: NonNullable<FixtureFile['servers']>[number]): ServerDetail {
  const tools = server.tools?.map(({ description = null, name, ...rest }) => ({ name, description, ...rest })) ?? null
  return fieldsOf(ServerDetail, { ...absent, ...server, tools })
}

/** The problem with `mcpUrl`, given the transport, or undefined. The schema cannot express this. */
export function connectionProblem({ transport = 'http', mcpUrl = null }: FixtureConnection): string | undefined {
  if (transport === 'uplink' && mcpUrl !== null) return 'must be null or left out for an uplink'
  if (transport === 'http' && mcpUrl === null) return 'is missing'
  return undefined
}

/** The full public record. `createdAt`: of one whose fixture does not say it. */
export function completeConnection(given: FixtureConnection, createdAt: string): Connection {
  const { connectionId, mock, pins, iconUrl, serverInfo } = given
  return {
    connectionId,
    name: given.name ?? connectionId,
    mcpUrl: given.mcpUrl ?? null,
    metadata: given.metadata ?? null,
    transport: given.transport ?? 'http',
    ...(mock !== undefined && { mock }),
    ...(pins !== undefined && { pins }),
    ...(iconUrl !== undefined && { iconUrl }),
    createdAt: given.createdAt ?? createdAt,
    status: given.status ?? { state: 'connected' },
    ...(serverInfo !== undefined && { serverInfo }),
  }
}
