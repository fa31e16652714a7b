/** `postern server`, `namespace` and `org`: the registry of a running platform. */

import { createInterface } from 'node:readline/promises'
import { CommandError } from '../errors.ts'
import { type Answer, allPages, at, type ClientFlags, openClient } from './api-client.ts'
import { show, showWhole, tell } from './api-output.ts'
import { readJsonFile } from './json-input.ts'
import type { Terminal } from './terminal.ts'

/** What an action of a command has. */
export interface Asked {
  readonly flags: ClientFlags & { readonly yes?: boolean }
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly terminal: Terminal
}

/** `source`: the URL of an MCP server, or a file with the body of `PUT /servers`. */
export async function addServer(name: string, source: string, { flags, environment, terminal }: Asked): Promise<void> {
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(source) && !/^https?:/i.test(source))
    throw new CommandError(`${source}: must be an http or https URL, or a file`, 2)
  const body = /^https?:/i.test(source) ? { mcpUrl: source } : readJsonFile(source)
  const made = await openClient(flags, environment).request('PUT', `/servers/${at(name)}`, body)
  // With `--json` they are in the body.
  for (const warning of flags.json === true ? [] : (made.warnings ?? [])) terminal.stderr(`warning: ${warning}\n`)
  tell(made, flags, `${name} is registered`, terminal)
}

/** Without words, all servers. */
export async function searchServers(words: readonly string[], { flags, environment, terminal }: Asked): Promise<void> {
  const { namespace, ...rest } = flags
  const query = new URLSearchParams({
    ...(words.length > 0 && { q: words.join(' ') }),
    ...(namespace && { namespace }),
  })
  const found = await allPages(openClient(rest, environment), `/servers?${query}`, 'servers', 100)
  const rows = found.servers.map((server: Answer) => [
    server.qualifiedName,
    server.displayName,
    server.isDeployed ? 'http' : '',
    server.description,
  ])
  show(found, flags, ['SERVER', 'NAME', 'REACHED BY', 'DESCRIPTION'], rows, terminal)
}

export async function getServer(name: string, { flags, environment, terminal }: Asked): Promise<void> {
  showWhole(await openClient(flags, environment).request('GET', `/servers/${at(name)}`), flags, terminal)
}

export async function introspectServer(name: string, { flags, environment, terminal }: Asked): Promise<void> {
  const server = await openClient(flags, environment).request('POST', `/servers/${at(name)}/.introspect`)
  const count = (items: unknown[] | null, what: string) => `${items?.length ?? 0} ${what}`
  const has = [count(server.tools, 'tools'), count(server.resources, 'resources'), count(server.prompts, 'prompts')]
  tell(server, flags, `${name} has ${has.join(', ')}`, terminal)
}

export async function removeServer(name: string, { flags, environment, terminal }: Asked): Promise<void> {
  const removed = await openClient(flags, environment).request('DELETE', `/servers/${at(name)}`)
  tell(removed, flags, `${name} is deleted; connections to it stay`, terminal)
}

/** `organization`: the owner; the caller, if it is left out. */
export async function addNamespace(
  name: string,
  organizationId: string | undefined,
  { flags, environment, terminal }: Asked,
): Promise<void> {
  const body = organizationId === undefined ? undefined : { organizationId }
  const made = await openClient(flags, environment).request('PUT', `/namespaces/${at(name)}`, body)
  tell(made, flags, `you lead the namespace ${name}`, terminal)
}

export async function listNamespaces({ flags, environment, terminal }: Asked): Promise<void> {
  const found = await allPages(openClient(flags, environment), '/namespaces', 'namespaces', 50)
  show(
    found,
    flags,
    ['NAMESPACE'],
    found.namespaces.map(({ name }: Answer) => [name]),
    terminal,
  )
}

export async function removeNamespace(name: string, asked: Asked): Promise<void> {
  const { flags, environment, terminal } = asked
  const client = openClient(flags, environment)
  await confirm(`Delete the namespace ${name} with all its connections?`, asked)
  tell(await client.request('DELETE', `/namespaces/${at(name)}`), flags, `the namespace ${name} is deleted`, terminal)
}

export async function addOrganization(
  id: string,
  { owner, name }: { readonly owner?: string; readonly name?: string },
  { flags, environment, terminal }: Asked,
): Promise<void> {
  const client = openClient(flags, environment)
  const body = { owner: owner ?? (await client.request('GET', '/me')).userId, ...(name !== undefined && { name }) }
  const made = await client.request('PUT', `/organizations/${at(id)}`, body)
  tell(made, flags, `the organization ${id} belongs to ${body.owner}`, terminal)
}

export async function listOrganizations({ flags, environment, terminal }: Asked): Promise<void> {
  const { organizations } = await openClient(flags, environment).request('GET', '/me')
  const rows = organizations.map(({ organizationId, role }: Answer) => [organizationId, role])
  show({ organizations }, flags, ['ORGANIZATION', 'ROLE'], rows, terminal)
}

/** Its members, which only they see, and operators. */
export async function getOrganization(id: string, { flags, environment, terminal }: Asked): Promise<void> {
  const organization = await openClient(flags, environment).request('GET', `/organizations/${at(id)}`)
  const rows = organization.members.map(({ userId, role }: Answer) => [userId, role])
  show(organization, flags, ['USER', 'ROLE'], rows, terminal)
}

export async function removeOrganization(id: string, asked: Asked): Promise<void> {
  const { flags, environment, terminal } = asked
  const client = openClient(flags, environment)
  await confirm(`Delete the organization ${id} with its members and API keys?`, asked)
  tell(await client.request('DELETE', `/organizations/${at(id)}`), flags, `the organization ${id} is deleted`, terminal)
}

export async function setMember(
  organization: string,
  user: string,
  role: string,
  { flags, environment, terminal }: Asked,
): Promise<void> {
  const path = `/organizations/${at(organization)}/members/${at(user)}`
  const member = await openClient(flags, environment).request('PUT', path, { role })
  tell(member, flags, `${user} is ${role} of ${organization}`, terminal)
}

export async function removeMember(organization: string, user: string, asked: Asked): Promise<void> {
  const { flags, environment, terminal } = asked
  const path = `/organizations/${at(organization)}/members/${at(user)}`
  const removed = await openClient(flags, environment).request('DELETE', path)
  tell(removed, flags, `removed ${user} from ${organization}`, terminal)
}

/** Prints the key alone, once. */
export async function createOrganizationKey(
  organization: string,
  name: string,
  { flags, environment, terminal }: Asked,
): Promise<void> {
  const client = openClient(flags, environment)
  const made = await client.request('POST', `/organizations/${at(organization)}/api-keys`, { name })
  tell(made, flags, made.key, terminal)
  terminal.stderr(`${made.id} acts for ${organization}. It is not shown again.\n`)
}

export async function listOrganizationKeys(organization: string, { flags, environment, terminal }: Asked) {
  const found = await openClient(flags, environment).request('GET', `/organizations/${at(organization)}/api-keys`)
  const rows = found.apiKeys.map(({ id, name, createdAt }: Answer) => [id, name, createdAt])
  show(found, flags, ['ID', 'NAME', 'CREATED'], rows, terminal)
}

export async function revokeOrganizationKey(
  organization: string,
  id: string,
  { flags, environment, terminal }: Asked,
): Promise<void> {
  const path = `/organizations/${at(organization)}/api-keys/${at(id)}`
  const revoked = await openClient(flags, environment).request('DELETE', path)
  tell(revoked, flags, `${id} is revoked, and every token minted with it`, terminal)
}

/** Asks on a terminal; elsewhere `--yes` must have been given. Throws CommandError. */
async function confirm(question: string, { flags }: Asked): Promise<void> {
  if (flags.yes === true) return
  if (!process.stdin.isTTY) throw new CommandError('this cannot be undone: confirm it with --yes', 2)
  const reader = createInterface({ input: process.stdin, output: process.stderr })
  const answer = await reader.question(`${question} [y/N] `)
  reader.close()
  if (!/^y(es)?$/i.test(answer.trim())) throw new CommandError('nothing was deleted')
}
