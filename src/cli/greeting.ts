/** The end of the output of `postern dev` and `make run`: commands to paste, and where the documentation is. */

import type { Fixtures } from '../maintenance/seed/read-fixtures.ts'

interface Greeted {
  readonly first: string
  readonly url: string
  /** Opens the console, once; undefined if there is none. */
  readonly link: string | undefined
}

const namespaceIn = (fixtures: Fixtures) =>
  fixtures.examples.first?.namespace ?? fixtures.namespaces[0]?.namespace ?? 'NAMESPACE'

/** The key that the commands have. `otherKey` is used if no fixture key may access the namespace. */
export function greetedKey(fixtures: Fixtures, otherKey: string | undefined): string | undefined {
  return keyWithAccess(namespaceIn(fixtures), fixtures) ?? otherKey
}

/** Commands to paste, after the line `first`: a list with a key of the fixtures, and a token with a narrower policy. */
export function greeting({ first, url, link }: Greeted, fixtures: Fixtures, otherKey: string | undefined): string {
  const namespace = namespaceIn(fixtures)
  const key = greetedKey(fixtures, otherKey) ?? 'KEY'
  return [
    '',
    `${first} Try:`,
    '',
    `  echo ${key} | postern login ${url}`,
    `  postern tool list -n ${namespace}`,
    '',
    `  curl -s -H 'Authorization: Bearer ${key}' '${url}/connect/${namespace}?limit=2'`,
    '',
    `  curl -s -X POST -H 'Authorization: Bearer ${key}' -H 'Content-Type: application/json' \\`,
    `    -d '{"policy":[{"namespaces":"${namespace}","operations":"read","ttl":"10m"}]}' '${url}/tokens'`,
    '',
    ...mcpLines(url, fixtures, otherKey),
    ...(link === undefined ? [] : [`The console: ${link} (signs you in once, within ten minutes)`]),
    `The documentation: ${url}/docs`,
    '',
  ].join('\n')
}

/** The configuration of a common MCP client for a mocked connection. Empty if there is none, or no key for it. */
function mcpLines(url: string, fixtures: Fixtures, otherKey: string | undefined): string[] {
  const mocked = fixtures.examples.firstMocked
  if (mocked === undefined) return []
  const { namespace, connectionId } = mocked
  const key = keyWithAccess(namespace, fixtures) ?? otherKey
  if (key === undefined) return []
  const mcp = `${url}/connect/${namespace}/${connectionId}`
  const config = {
    mcpServers: { postern: { type: 'http', url: `${mcp}/mcp`, headers: { Authorization: `Bearer ${key}` } } },
  }
  return [
    `The mocked connection ${namespace}/${connectionId} is an MCP server with no network behind it. For a client that reads`,
    'a file (mcp.json, or its own settings):',
    '',
    `  ${JSON.stringify(config)}`,
    '',
    'or without MCP:',
    '',
    `  curl -s -H 'Authorization: Bearer ${key}' '${mcp}/.tools'`,
    '',
  ]
}

/** A user's key that may access the namespace, which shows the usual case, or else an operator key. */
function keyWithAccess(name: string, { namespaces, organizations, apiKeys }: Fixtures): string | undefined {
  const namespace = namespaces.find((one) => one.namespace === name)
  if (namespace === undefined) return undefined
  const users =
    'userId' in namespace
      ? [namespace.userId]
      : organizations
          .find(({ organizationId }) => organizationId === namespace.organizationId)
          ?.members.map(({ userId }) => userId)
  const theirs = apiKeys.find(({ userId, operator }) => operator !== true && users?.includes(userId))
  return (theirs ?? apiKeys.find(({ operator }) => operator === true))?.key
}
