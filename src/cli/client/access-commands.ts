/** Keys, grants and tokens of a running platform: an operator's commands reach everybody's, others their own. */

import { unverifiedClaims } from '../../auth/service-token.ts'
import { CommandError } from '../../errors.ts'
import type { NamedFolder } from '../../maintenance/data-folder.ts'
import { ApiKeyList, ApiKeyMade, ApiKeyPage, GrantPage, Me } from '../../model/organization.ts'
import { SigningKeyList, TokenRevoked, tokenIdShape } from '../../model/token.ts'
import { oneLine } from '../../ops/escape-control.ts'
import type { CreateFlags } from '../access-commands.ts'
import { grantHeading, grantRow, keyHeading, keyRow, signingKeyHeading, signingKeyRow } from '../access-rows.ts'
import { noToken, readToken, revokedToken } from '../json-input.ts'
import { allPages, pathSegment } from './api-client.ts'
import type { CommandContext } from './context.ts'

/** The user, and the beginning of the paths of everybody's things for an operator, and of the own ones for others. */
async function scopeOf({ request }: Pick<CommandContext, 'request'>) {
  const { userId, operator, token } = await request('GET', '/me', { reads: Me })
  return { userId, scope: operator && token === null ? '' : '/me' }
}

/** Without `--user`, the key is the caller's own. */
export async function createKey(context: CommandContext<Omit<CreateFlags, keyof NamedFolder>>): Promise<void> {
  const { flags, request, say, stderr } = context
  const { user, name, operator } = flags
  const isOwn = user === undefined && operator !== true
  const body = isOwn ? { name: name ?? 'command line' } : { userId: user, name, operator }
  const made = await request('POST', isOwn ? '/me/api-keys' : '/api-keys', { body, reads: ApiKeyMade })
  say(made, made.key)
  const holder = `${user ?? 'you'}${operator === true ? ', an operator' : ''}`
  stderr(`${oneLine(made.id)} belongs to ${oneLine(holder)}. The key is not shown again.\n`)
}

export async function listKeys(context: CommandContext): Promise<void> {
  const { userId, scope } = await scopeOf(context)
  const found =
    scope === ''
      ? await allPages(context, '/api-keys', ['apiKeys', ApiKeyPage.properties.apiKeys.items], 100)
      : await context.request('GET', '/me/api-keys', { reads: ApiKeyList })
  const own = { userId, operator: false, revokedAt: null }
  const rows = found.apiKeys.map((key) => keyRow({ ...own, ...key }))
  context.show(found, keyHeading, rows)
}

export async function revokeKey(context: CommandContext, id: string): Promise<void> {
  const missing = `there is no key ${id}, or it is not yours: see \`postern keys list\``
  const { scope } = await scopeOf(context)
  const path = `${scope}/api-keys/${pathSegment(id)}`
  context.say(await context.request('DELETE', path, { missing }), `${id} is revoked, and every token minted with it`)
}

export async function listGrantsCommand(context: CommandContext): Promise<void> {
  const { scope } = await scopeOf(context)
  const found = await allPages(context, `${scope}/grants`, ['grants', GrantPage.properties.grants.items], 100)
  context.show(found, grantHeading, found.grants.map(grantRow))
}

export async function revokeGrantCommand(context: CommandContext, id: string): Promise<void> {
  const missing = `there is no grant ${id}, or it is not yours: see \`postern grants list\``
  const { scope } = await scopeOf(context)
  const path = `${scope}/grants/${pathSegment(id)}`
  context.say(await context.request('DELETE', path, { missing }), `${id} is revoked, and every token of it`)
}

export async function listSigningKeys(context: CommandContext): Promise<void> {
  showSigningKeys(context, await context.request('GET', '/signing-keys', { reads: SigningKeyList }))
}

export async function rotateSigningKeys(context: CommandContext): Promise<void> {
  const found = await context.request('POST', '/signing-keys/rotate', { reads: SigningKeyList })
  showSigningKeys(context, found)
  context.stderr(`${found.keys.find(({ state }) => state === 'active')?.kid} signs from now on\n`)
}

function showSigningKeys(context: CommandContext, found: SigningKeyList): void {
  context.show(found, signingKeyHeading, found.keys.map(signingKeyRow))
}

/** `named`: a token, or its id; `-` reads stdin. */
export async function revokeTokenCommand({ request, say }: CommandContext, named: string): Promise<void> {
  const token = readToken(named)
  if (unverifiedClaims(token) === undefined && !tokenIdShape.test(token)) throw new CommandError(noToken, 2)
  const isId = tokenIdShape.test(token)
  const body = isId ? { tokenId: token } : { token }
  const revoked = await request('POST', '/tokens/revoke', { body, reads: TokenRevoked })
  say(revoked, revokedToken(revoked.tokenId, isId))
}
