/** The end of the output of `postern dev` and `make run`: commands to paste, and where the documentation is. */

import type { Fixtures } from '../maintenance/seed/read-fixtures.ts'

/**
 * Commands to paste, after the line `first`: a list with a key of the fixtures, and a token with a narrower policy.
 * `otherKey` is used if no fixture key may access the namespace.
 */
export function greeting(first: string, url: string, fixtures: Fixtures, otherKey: string | undefined): string {
  const namespace = fixtures.examples.first?.namespace ?? fixtures.namespaces[0]?.namespace ?? 'NAMESPACE'
  const key = keyWithAccess(namespace, fixtures) ?? otherKey ?? 'KEY'
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
    `The console is at ${url}/console (sign in with the key above), and the documentation at ${url}/docs`,
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
