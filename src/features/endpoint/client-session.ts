/** A client's session with the endpoint: its id holds what the client offers, sealed (contract, 20.8). */

import { randomBytes } from 'node:crypto'
import { credentialIdOf } from '../../auth/authenticate.ts'
import type { RequestContext } from '../../auth/authorizer.ts'
import { openText, sealText } from '../../auth/secrets.ts'
import { pathOf } from '../../http/path.ts'
import { ownClientInfo } from '../../model/mcp.ts'
import type { ClientGreeting } from '../gateway/sessions.ts'

/** Ours: characters of a client's description of itself; postern seals the description in the session id, which must fit into a header. Past it: -32602. */
export const clientGreetingCharsMax = 3000

const prefix = 'postern.'

/** Extensions of MCP that the endpoint passes on to servers. It could not route what others need. */
const passedExtensions = new Set(['io.modelcontextprotocol/ui'])

/** A client without a session, or with that of somebody else: it offers nothing to servers. */
export const nobody: ClientGreeting = {
  sessionId: '',
  capabilities: {},
  clientInfo: ownClientInfo,
}

/** Capabilities that servers may use through the endpoint. */
export function passedCapabilities(given: unknown): object {
  if (typeof given !== 'object' || given === null) return {}
  const { tasks: _, extensions, ...capabilities } = given as { tasks?: unknown; extensions?: unknown }
  if (typeof extensions !== 'object' || extensions === null) return capabilities
  const passed = Object.entries(extensions).filter(([name]) => passedExtensions.has(name))
  return { ...capabilities, extensions: Object.fromEntries(passed) }
}

/** The owner of a client's sessions: the caller at this URL. */
export function clientOwnerOf({ request, caller }: RequestContext): string {
  return `${pathOf(request.url)}\0${credentialIdOf(caller)}`
}

/** A new session id; undefined if the client says too much of itself. `owner`: see `clientOwnerOf`. */
export function sealClient(key: Buffer, owner: string, capabilities: unknown, clientInfo: unknown): string | undefined {
  const told = [randomBytes(9).toString('base64url'), passedCapabilities(capabilities), clientInfo ?? {}]
  const text = JSON.stringify(told)
  return text.length > clientGreetingCharsMax ? undefined : prefix + sealText(key, text, owner)
}

/** The session of an id that a client sent; `nobody` for the id of anybody else. */
export function openClient(key: Buffer, owner: string, given: string | null): ClientGreeting {
  if (given === null || !given.startsWith(prefix)) return nobody
  const text = openText(key, given.slice(prefix.length), owner)
  if (text === undefined) return nobody
  const [sessionId, capabilities, clientInfo] = JSON.parse(text) as [string, object, object]
  return { sessionId, capabilities, clientInfo }
}
