/** `postern org`: organizations, their members and API keys. */

import type { ApiKeyList, ApiKeyMade, Me, OrganizationDetail } from '../../model/organization.ts'
import { type CommandContext, openClient, pathSegment } from './api-client.ts'
import { confirmDeletion } from './confirm-deletion.ts'
import { printSentence, printTable } from './output.ts'

export async function addOrganization(
  id: string,
  { owner, name }: { readonly owner?: string; readonly name?: string },
  { flags, environment, terminal }: CommandContext,
): Promise<void> {
  const client = openClient(flags, environment)
  const body = { owner: owner ?? (await client.request<Me>('GET', '/me')).userId, ...(name !== undefined && { name }) }
  const made = await client.request<OrganizationDetail>('PUT', `/organizations/${pathSegment(id)}`, { body })
  const owners = made.members.filter(({ role }) => role === 'owner').map(({ userId }) => userId)
  printSentence(made, flags, `the organization ${id} belongs to ${owners.join(', ')}`, terminal)
}

export async function listOrganizations({ flags, environment, terminal }: CommandContext): Promise<void> {
  const { organizations } = await openClient(flags, environment).request<Me>('GET', '/me')
  const rows = organizations.map(({ organizationId, role }) => [organizationId, role])
  printTable({ organizations }, flags, { heading: ['ORGANIZATION', 'ROLE'], rows: rows }, terminal)
}

/** Its members, which only they see, and operators. */
export async function getOrganization(id: string, { flags, environment, terminal }: CommandContext): Promise<void> {
  const organization = await openClient(flags, environment).request<OrganizationDetail>(
    'GET',
    `/organizations/${pathSegment(id)}`,
  )
  const rows = organization.members.map(({ userId, role }) => [userId, role])
  printTable(organization, flags, { heading: ['USER', 'ROLE'], rows: rows }, terminal)
}

export async function removeOrganization(id: string, context: CommandContext): Promise<void> {
  const { flags, environment, terminal } = context
  const client = openClient(flags, environment)
  await confirmDeletion(`Delete the organization ${id} with its members and API keys?`, context)
  printSentence(
    await client.request('DELETE', `/organizations/${pathSegment(id)}`),
    flags,
    `the organization ${id} is deleted`,
    terminal,
  )
}

export async function setMember(
  organization: string,
  user: string,
  role: string,
  { flags, environment, terminal }: CommandContext,
): Promise<void> {
  const path = `/organizations/${pathSegment(organization)}/members/${pathSegment(user)}`
  const member = await openClient(flags, environment).request('PUT', path, { body: { role } })
  printSentence(member, flags, `${user} is ${role} of ${organization}`, terminal)
}

export async function removeMember(organization: string, user: string, context: CommandContext): Promise<void> {
  const { flags, environment, terminal } = context
  const path = `/organizations/${pathSegment(organization)}/members/${pathSegment(user)}`
  const removed = await openClient(flags, environment).request('DELETE', path)
  printSentence(removed, flags, `removed ${user} from ${organization}`, terminal)
}

/** Prints the key alone, once. */
export async function createOrganizationKey(
  organization: string,
  name: string,
  { flags, environment, terminal }: CommandContext,
): Promise<void> {
  const client = openClient(flags, environment)
  const made = await client.request<ApiKeyMade>('POST', `/organizations/${pathSegment(organization)}/api-keys`, {
    body: { name },
  })
  printSentence(made, flags, made.key, terminal)
  terminal.stderr(`${made.id} acts for ${organization}. The key is not shown again.\n`)
}

export async function listOrganizationKeys(organization: string, { flags, environment, terminal }: CommandContext) {
  const found = await openClient(flags, environment).request<ApiKeyList>(
    'GET',
    `/organizations/${pathSegment(organization)}/api-keys`,
  )
  const rows = found.apiKeys.map(({ id, name, createdAt }) => [id, name, createdAt])
  printTable(found, flags, { heading: ['ID', 'NAME', 'CREATED'], rows: rows }, terminal)
}

export async function revokeOrganizationKey(
  organization: string,
  id: string,
  { flags, environment, terminal }: CommandContext,
): Promise<void> {
  const path = `/organizations/${pathSegment(organization)}/api-keys/${pathSegment(id)}`
  const revoked = await openClient(flags, environment).request('DELETE', path)
  printSentence(revoked, flags, `${id} is revoked, and every token minted with it`, terminal)
}
