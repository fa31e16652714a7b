/** `postern org`: organizations, their members and API keys. */

import { type Command, Option } from 'commander'
import { CommandError } from '../../errors.ts'
import { ApiKeyList, ApiKeyMade, Me, OrganizationDetail } from '../../model/organization.ts'
import { oneLine } from '../../ops/escape-control.ts'
import { group, keyId } from '../options.ts'
import { pathSegment } from './api-client.ts'
import { type CommandContext, confirmDeletion, type RemoteCommands } from './context.ts'

const pathOf = (id: string) => `/organizations/${pathSegment(id)}`

/** The caller's user id, for a new organization. Throws CommandError if there is one: the caller would own it, too. */
async function newOwner(request: CommandContext['request'], id: string): Promise<string> {
  const there = await request('GET', pathOf(id), { reads: OrganizationDetail }).catch((error) => {
    if (error instanceof CommandError && error.status === 404) return undefined
    throw error
  })
  if (there !== undefined)
    throw new CommandError(
      `the organization ${id} already exists, and without --owner you would become its owner too: name the owner with --owner`,
    )
  return (await request('GET', '/me', { reads: Me })).userId
}

export function addOrganizationCommands(postern: Command, remotes: RemoteCommands): void {
  const { remote } = remotes
  const org = group(postern, 'org').description('manage organizations, their members and API keys')
  remote(org, 'add', 'create an organization (operators only)')
    .argument('<id>', 'the id of the organization')
    .option('--owner <user>', 'user who owns the organization (default: yourself)')
    .option('--name <name>', 'name of the organization')
    .run(async ({ flags, request, say }: CommandContext<{ owner?: string; name?: string }>, id: string) => {
      const { name } = flags
      const owner = flags.owner ?? (await newOwner(request, id))
      const made = await request('PUT', pathOf(id), { body: { owner, name }, reads: OrganizationDetail })
      const owners = made.members.filter(({ role }) => role === 'owner').map(({ userId }) => userId)
      say(made, `the organization ${id} belongs to ${owners.join(', ')}`)
    })
  remote(org, 'list', 'list the organizations that you are a member of').run(async ({ request, show, stderr }) => {
    const { organizations, operator } = await request('GET', '/me', { reads: Me })
    if (operator) stderr('Operators may read any organization by its id: `postern org get ID`\n')
    const rows = organizations.map(({ organizationId, role }) => [organizationId, role])
    show({ organizations }, ['ORGANIZATION', 'ROLE'], rows)
  })
  // Only they see its members, and operators.
  remote(org, 'get', 'list the members of an organization')
    .argument('<id>', 'the id of the organization')
    .run(showMembers)
  remote(org, 'rm', 'delete an organization with its members and API keys')
    .argument('<id>', 'the id of the organization')
    .option('--yes', 'delete without asking')
    .run(async ({ flags, request, say }: CommandContext<{ yes?: boolean }>, id: string) => {
      await confirmDeletion(`Delete the organization ${id} with its members and API keys?`, flags)
      say(await request('DELETE', pathOf(id)), `the organization ${id} is deleted`)
    })
  addMemberCommands(org, remotes)
  addKeyCommands(org, remotes)
}

async function showMembers({ request, show }: CommandContext, id: string): Promise<void> {
  const organization = await request('GET', pathOf(id), { reads: OrganizationDetail })
  const rows = organization.members.map(({ userId, role }) => [userId, role])
  show(organization, ['USER', 'ROLE'], rows)
}

function addMemberCommands(org: Command, { remote }: RemoteCommands): void {
  const member = group(org, 'member').description('manage the members of an organization')
  const memberOf = (organization: string, user: string) => `${pathOf(organization)}/members/${pathSegment(user)}`
  remote(member, 'add', 'add a member, or change a member’s role')
    .argument('<organization>', 'the id of the organization')
    .argument('<user>', 'the id of the user')
    .addOption(
      new Option('--role <role>', 'what the user may do').choices(['owner', 'admin', 'member']).default('member'),
    )
    .run(async ({ flags, request, say }: CommandContext<{ role: string }>, organization: string, user: string) => {
      const made = await request('PUT', memberOf(organization, user), { body: { role: flags.role } })
      say(made, `${user} has the role ${flags.role} in ${organization}`)
    })
  remote(member, 'list', 'list the members of an organization')
    .argument('<organization>', 'the id of the organization')
    .run(showMembers)
  remote(member, 'rm', 'remove a member')
    .argument('<organization>', 'the id of the organization')
    .argument('<user>', 'the id of the user')
    .run(async ({ request, say }, organization: string, user: string) => {
      const missing = `${user} is not a member of ${organization}: see \`postern org member list ${organization}\``
      const removed = await request('DELETE', memberOf(organization, user), { missing })
      const next = `an operator ends the user's own keys with \`postern keys revoke\``
      say(removed, `removed ${user} from ${organization}; ${next}`)
    })
}

function addKeyCommands(org: Command, { remote }: RemoteCommands): void {
  const key = group(org, 'key').description('manage the API keys of an organization')
  const keysOf = (organization: string) => `${pathOf(organization)}/api-keys`
  remote(key, 'create', 'create an API key that acts for the organization, and print it once')
    .argument('<organization>', 'the id of the organization')
    .argument('<name>', 'what the key is for')
    .run(async ({ request, say, stderr }, organization: string, name: string) => {
      const made = await request('POST', keysOf(organization), { body: { name }, reads: ApiKeyMade })
      say(made, made.key)
      stderr(`${oneLine(made.id)} acts for ${organization}. The key is not shown again.\n`)
    })
  remote(key, 'list', 'list the API keys of an organization')
    .argument('<organization>', 'the id of the organization')
    .run(async ({ request, show }, organization: string) => {
      const found = await request('GET', keysOf(organization), { reads: ApiKeyList })
      const rows = found.apiKeys.map(({ id, name, createdAt }) => [id, name, createdAt])
      show(found, ['ID', 'NAME', 'CREATED'], rows)
    })
  remote(key, 'revoke', 'revoke an API key and every token minted with it')
    .argument('<organization>', 'the id of the organization')
    .argument('<id>', 'the id of the key, as `org key list` shows it', keyId)
    .run(async ({ request, say }, organization: string, id: string) => {
      const revoked = await request('DELETE', `${keysOf(organization)}/${pathSegment(id)}`)
      say(revoked, `${id} is revoked, and every token minted with it`)
    })
}
