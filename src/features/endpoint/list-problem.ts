/** Why a list of a connection is missing, or old (contract, 20.4). */

import { PlatformError } from '../../errors.ts'
import { asPlatformError } from '../../http/error-response.ts'
import { toolsCharsMax } from '../../limits.ts'
import { cutText } from '../../schema/cut-text.ts'
import type { StoredConnection } from '../../storage/connections.ts'

/** Contract 20.4: definitions in the lists of one endpoint; five hundred for each of a hundred connections. Past it: the connection is left out as `too_large`. */
export const joinedDefinitionsMax = 50_000

export interface ListProblem {
  readonly error:
    | 'auth_required'
    | 'input_required'
    | 'disconnected'
    | 'upstream_error'
    | 'upstream_timeout'
    | 'too_large'
    | 'name_collision'
  readonly message: string
  readonly setupUrl?: string
}

export interface Size {
  readonly bytes: number
  readonly definitions: number
}

/** For the connections whose servers have not answered in time. */
export const late = { error: 'upstream_timeout', message: 'The MCP server has not listed its tools yet' } as const

/** For the connections that do not fit. */
export const tooLarge = {
  error: 'too_large',
  message: `The lists of all connections have more than ${toolsCharsMax} bytes or ${joinedDefinitionsMax} definitions: use a view, or a token that allows fewer`,
} as const

/** The lists of one connection do not fit by themselves. */
export class TooLarge extends PlatformError {
  constructor() {
    super('upstream_error', `This server’s lists have more than ${toolsCharsMax} bytes: let it list less`)
  }
}

/** Those that one answer has room for, the smallest first: a server that lists very much leaves out itself alone. */
export function fitting<T>(all: readonly T[], sizeOf: (one: T) => Size): ReadonlySet<T> {
  const share = ({ bytes, definitions }: Size) => Math.max(bytes / toolsCharsMax, definitions / joinedDefinitionsMax)
  const sum = { bytes: 0, definitions: 0 }
  const fits = new Set<T>()
  for (const one of all.toSorted((a, b) => share(sizeOf(a)) - share(sizeOf(b)))) {
    const { bytes, definitions } = sizeOf(one)
    if (sum.bytes + bytes > toolsCharsMax || sum.definitions + definitions > joinedDefinitionsMax) continue
    sum.bytes += bytes
    sum.definitions += definitions
    fits.add(one)
  }
  return fits
}

/** Why a connection must not be contacted in this state; undefined if it may be. */
export function stateProblem({ connection: { status, mock } }: StoredConnection): ListProblem | undefined {
  if (mock?.enabled === true) return undefined
  const { setupUrl } = status as { setupUrl?: string }
  const link = setupUrl === undefined ? {} : { setupUrl }
  if (status.state === 'auth_required') return { error: 'auth_required', message: 'Sign-in is needed', ...link }
  if (status.state === 'input_required') return { error: 'input_required', message: 'Values are needed', ...link }
  if (status.state === 'disconnected') return { error: 'disconnected', message: 'Its server is not connected' }
  return undefined
}

/** Characters of a message, which may be a server's: thousands of connections have one. Past it: it is cut. */
const problemCharsMax = 500

/** For a read that has failed. */
export function problemOf(thrown: unknown): ListProblem {
  if (thrown instanceof TooLarge) return { error: 'too_large', message: thrown.message }
  const { code, message, options } = asPlatformError(thrown)
  const link = options.setupUrl === undefined ? {} : { setupUrl: options.setupUrl }
  if (code === 'upstream_unauthorized' || code === 'upstream_sign_in')
    return { error: 'auth_required', message: 'Sign-in is needed', ...link }
  if (code === 'upstream_timeout') return { error: 'upstream_timeout', message }
  const text = thrown instanceof PlatformError ? message : 'The MCP server’s lists could not be read'
  return { error: 'upstream_error', message: cutText(text, problemCharsMax) }
}
