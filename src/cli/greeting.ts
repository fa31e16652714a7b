/** The end of the output of `postern dev` and `make run`: commands to paste, and where console and documentation are. */

import { apiKeyDigest, findApiKey } from '../auth/api-key.ts'
import { createExpiringRecords } from '../auth/expiring-records.ts'
import { systemClock } from '../clock.ts'
import type { LoginLink } from '../features/sign-in/sign-in-handlers.ts'
import { isSecureUrl } from '../http/guard.ts'
import { loginLinkSeconds } from '../limits.ts'
import type { DataFolder } from '../maintenance/data-folder.ts'
import type { Fixtures } from '../maintenance/seed/read-fixtures.ts'

interface Greeted {
  readonly first: string
  readonly url: string
  readonly folder: Pick<DataFolder, 'store' | 'secrets'>
  readonly hasConsole: boolean
}

const namespaceIn = (fixtures: Fixtures) =>
  fixtures.examples.first?.namespace ?? fixtures.namespaces[0]?.namespace ?? 'NAMESPACE'

/** The key that the commands have. `otherKey` is used if no fixture key may access the namespace. */
export const greetedKey = (fixtures: Fixtures, otherKey?: string): string | undefined =>
  keyWithAccess(namespaceIn(fixtures), fixtures) ?? otherKey

/** Commands to paste after the line `first`, with a key of the fixtures; and a link that opens the console with it. */
export async function greeting(greeted: Greeted, fixtures: Fixtures, otherKey?: string): Promise<string> {
  const { first, url } = greeted
  const namespace = namespaceIn(fixtures)
  const known = greetedKey(fixtures, otherKey)
  const link = known === undefined ? undefined : await consoleLink(greeted, known)
  const key = known ?? 'KEY'
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
    ...(link === undefined
      ? []
      : [`The console: ${link} (signs you in once, within ten minutes; later: ${url}/console)`]),
    `The documentation: ${url}/docs`,
    '',
  ].join('\n')
}

/** Undefined without a console over this URL, or without that key. The link has no audit entry: the keys are public. */
async function consoleLink({ url, folder: { store, secrets }, hasConsole }: Greeted, key: string) {
  if (!hasConsole || !isSecureUrl(url)) return undefined
  const record = await findApiKey(store, apiKeyDigest(secrets.apiKeyPepper, key))
  if (record === undefined || record.revokedAt !== null) return undefined
  const records = createExpiringRecords(store, secrets.signInKey, systemClock)
  const secret = await records.add('login link', { keyId: record.keyId } satisfies LoginLink, loginLinkSeconds)
  return `${url}/signin?link=${secret}`
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
