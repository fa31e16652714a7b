/** Reads all that a connection's server offers, with the connection's own credentials (contract, 20.4). */

import type { AuthorizedConnection, RequestContext } from '../../auth/authorizer.ts'
import { notFound, PlatformError } from '../../errors.ts'
import { newestHandshake, ownClientInfo } from '../../model/mcp.ts'
import { bytesPerCharacter } from '../../storage/bytes.ts'
import { findConnection } from '../../storage/connections.ts'
import { within } from '../../within.ts'
import type { AuthorizedCall, EndpointCall } from '../gateway/authorized-call.ts'
import { type GatewayDeps, sessionOwnerOf } from '../gateway/forward.ts'
import { readGreeting, type ServerGreeting } from '../gateway/sessions.ts'
import { ask, type Definition, type ListKind, listDefinitions, MissingMethod } from '../gateway/tool-requests.ts'
import { inBackground } from './background.ts'
import { type Kept, type Offer, writingLines, writingRecord } from './kept-record.ts'

/** Contract 20.4: milliseconds that a read of a server's lists may take. Past it: it ends as `upstream_timeout`. */
const listReadTimeoutMs = 30_000

/** The reader's session with each server: it offers nothing to the server. */
const reader: EndpointCall = {
  via: 'namespace',
  client: { sessionId: 'lists', capabilities: {}, clientInfo: ownClientInfo },
}

/** The record of a server's lists, as anybody's request may need them. Throws what `listDefinitions` throws. */
export async function readOffer(
  deps: GatewayDeps,
  context: RequestContext,
  connection: AuthorizedConnection,
  head: Pick<Kept, 'of' | 'listedAt'>,
): Promise<Buffer> {
  // Every caller's list is made of it, so no policy narrows it here.
  const caller = { ...context.caller, blocks: [], metadataFingerprint: '' }
  const background = { holder: context.caller, signal: AbortSignal.timeout(listReadTimeoutMs) }
  const reading = inBackground(deps, { ...context, caller }, background, async (own, allowance) => {
    using kept = new DisposableStack()
    const keep = (characters: number) => kept.defer(allowance.takeMemory(characters * bytesPerCharacter)) // 429
    const offer = await readAll(deps, callOf(deps, own, connection), keep)
    return allowance.run(writingRecord(offer, head))
  })
  // The signal does not end the opening of a session, which others may wait for.
  return within(listReadTimeoutMs, reading, () => {
    throw new PlatformError(
      'upstream_timeout',
      `The MCP server did not list what it has within ${listReadTimeoutMs / 1000} s`,
    )
  })
}

/** The platform itself may ask as long as the connection is there. */
function callOf(deps: GatewayDeps, own: RequestContext, connection: AuthorizedConnection): AuthorizedCall {
  const { namespace, connectionId } = connection
  const context = { ...own, at: deps.clock.monotonic() }
  return {
    ...{ context, connection, endpoint: reader },
    async renew() {
      const stored = await findConnection(deps.store, namespace, connectionId)
      if (stored === undefined) throw notFound()
      return callOf(deps, context, { namespace, connectionId, stored })
    },
  }
}

/** `keep`: takes the memory of texts of so many characters, which wait for other lists of the server. */
async function readAll(deps: GatewayDeps, call: AuthorizedCall, keep: (characters: number) => void): Promise<Offer> {
  const isMocked = call.connection.stored.connection.mock?.enabled === true
  const greeted = isMocked ? await greet(deps, call) : undefined
  let isStateless = false
  const offered = async (kind: ListKind, greeting: ServerGreeting | undefined) => {
    const capability = kind === 'resourceTemplates' ? 'resources' : kind
    if (greeting?.capabilities.includes(capability) === false) return []
    const lines = (page: readonly Definition[]) => writingLines(kind, page)
    const { definitions, era } = await listDefinitions(deps, call, kind, lines).catch((thrown) => {
      if (thrown instanceof MissingMethod) return { definitions: [], era: undefined }
      throw thrown
    })
    if (era === 'stateless') isStateless = true
    keep(definitions.reduce((sum, { length }) => sum + length, 0))
    return definitions
  }
  await forgetFormerGreeting(deps, call)
  // Most servers have tools, and the request opens the session that says what else they have.
  const tools = await offered('tools', greeted)
  const { opened } = deps.sessions
  // That of a server that has given up sessions says nothing of it any more.
  const session = isStateless ? undefined : opened(call.context.caller.keyId, sessionOwnerOf(call))
  const greeting = greeted ?? session?.greeting ?? (await discover(deps, call))
  return {
    tools,
    prompts: await offered('prompts', greeting),
    resources: await offered('resources', greeting),
    resourceTemplates: await offered('resourceTemplates', greeting),
    era: isMocked || session?.greeting !== undefined || greeting === undefined ? 'handshake' : 'stateless',
    ...(greeting?.instructions !== undefined && { instructions: greeting.instructions }),
    ...(greeting !== undefined && { instructionsHash: greeting.instructionsHash ?? null }),
  }
}

/** The server has greeted somebody else with other instructions than the reader's session has: it is greeted again. */
async function forgetFormerGreeting({ pins, sessions }: GatewayDeps, call: AuthorizedCall): Promise<void> {
  const { context, connection } = call
  const { keyId } = context.caller
  const session = sessions.opened(keyId, sessionOwnerOf(call))
  if (session?.greeting === undefined) return
  const { instructions } = await pins.of(context, connection)
  const former = session.greeting.instructionsHash ?? null
  if (instructions !== undefined && instructions.present !== former)
    sessions.forget(keyId, sessionOwnerOf(call), session)
}

/** The greeting of a mock, which has no sessions. */
async function greet(deps: GatewayDeps, call: AuthorizedCall): Promise<ServerGreeting> {
  const { capabilities, clientInfo } = reader.client
  const params = { protocolVersion: newestHandshake, capabilities, clientInfo }
  return readGreeting((await ask(deps, call, 'initialize', params)).result as Record<string, unknown>)
}

/** The greeting of a server that speaks revision 2026-07-28 only; undefined if it does not know the method. */
async function discover(deps: GatewayDeps, call: AuthorizedCall): Promise<ServerGreeting | undefined> {
  const answer = await ask(deps, call, 'server/discover', {}).catch(() => undefined)
  return answer?.era === 'stateless' ? readGreeting(answer.result as Record<string, unknown>) : undefined
}
