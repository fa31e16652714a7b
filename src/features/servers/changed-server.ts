/** The server that a write makes of the stored one (contract, 9.6 to 9.10). */

import type { RequestContext } from '../../auth/authorizer.ts'
import {
  fieldsOf,
  isSamePlace,
  ListingExtras,
  noExtras,
  type ServerChange,
  ServerDetail,
  type ServerWrite,
} from '../../model/server.ts'
import type { Introspection } from '../../upstream/introspect.ts'
import type { StoredServer } from './server-records.ts'

/** Whether the caller may say that a server is verified: an operator as such, not with a token for an organization. */
export function isOperator({ caller }: Pick<RequestContext, 'caller'>): boolean {
  return caller.operator && caller.organizationId === undefined
}

/**
 * Statements about a server at its old place do not hold at a new one: it is no longer verified, unless an operator
 * moves it, nor described by the `server.json` that was imported.
 */
export function trusted(
  by: Pick<RequestContext, 'caller'>,
  before: StoredServer | undefined,
  after: StoredServer,
): StoredServer {
  if (before === undefined || isSamePlace(before.detail, after.detail)) return after
  const { serverJson: _, ...extras } = after.extras
  return { ...after, extras: { ...extras, verified: extras.verified && isOperator(by) } }
}

/** The server after a write: what neither it nor `introspected` gives stays. A new one has its own title. */
export function merged(
  qualifiedName: string,
  before: StoredServer | undefined,
  { mcpUrl, tools, ...write }: ServerWrite,
  { introspected, about }: Partial<Introspection> = {},
): StoredServer {
  const { detail, extras } = withChange(before ?? withChange(newDetail(qualifiedName), about ?? {}), write)
  const given = tools?.map(({ name, description = null, ...more }) => ({ name, description, ...more })) ?? null
  const after = { ...detail, ...(tools !== undefined && { tools: given }), ...introspected }
  return { extras, detail: mcpUrl === undefined ? after : withUrl(after, mcpUrl) }
}

/** The server with these fields. Those that are left out stay. */
export function withChange(
  { detail, extras }: StoredServer,
  change: ServerChange & Omit<ServerWrite, 'mcpUrl' | 'tools'>,
): StoredServer {
  return {
    detail: { ...detail, ...fieldsOf(ServerDetail, change) },
    extras: { ...extras, ...fieldsOf(ListingExtras, change) },
  }
}

/** A server that nobody has said anything about yet (contract, 9.6). */
export function newDetail(qualifiedName: string): StoredServer {
  const slug = qualifiedName.slice(qualifiedName.indexOf('/') + 1)
  const detail = {
    qualifiedName,
    displayName: slug,
    description: '',
    iconUrl: null,
    remote: false,
    deploymentUrl: null,
    connections: [],
    security: null,
    tools: null,
    resources: null,
    prompts: null,
  }
  return { detail, extras: noExtras }
}

/** A server is reached by one URL: its deployment, and its one http option. */
export function withUrl(
  detail: ServerDetail,
  url: string,
  schema?: ServerDetail['connections'][number]['configSchema'],
): ServerDetail {
  const before = detail.connections.find((option) => option.type === 'http')
  const configSchema = schema ?? before?.configSchema ?? {}
  const others = detail.connections.filter(({ type }) => type !== 'http')
  return {
    ...detail,
    remote: true,
    deploymentUrl: url,
    connections: [{ type: 'http', deploymentUrl: url, configSchema }, ...others],
  }
}
