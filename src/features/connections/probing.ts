/**
 * Probes the servers of one write. A probe can take seconds, and writes of one connection wait for one another: so a
 * decision that lacks an answer is given up, the server is asked while others write, and then it is decided again.
 */

import type { RequestContext } from '../../auth/authorizer.ts'
import { invalidRequest } from '../../errors.ts'
import type { Connection } from '../../model/connection.ts'
import { type ProbeResult, probeServer } from '../../upstream/probe.ts'
import { type Upstream, UpstreamError } from '../../upstream/upstream.ts'
import type { Draft } from './draft.ts'

interface Question {
  /** URL and headers. */
  readonly target: string
  /** Sealed. */
  readonly tokens: string | undefined
}

/** The probes of one write. */
export type Probing = ReturnType<typeof createProbing>

/**
 * Times that a server is asked because the tokens of its connection are others by then. Past it: the last answer
 * stands. A server whose tokens end at once would be asked for ever, since each question renews them.
 */
const asksMax = 3

export function createProbing(upstream: Upstream, { caller, request }: RequestContext) {
  let asks = 0
  let known: (Question & { readonly result: ProbeResult }) | undefined
  let lacking: (Question & { readonly signIn: () => Promise<Draft> }) | undefined

  return {
    /** Whether the last decision had an answer of the server. */
    get hasAsked(): boolean {
      return known !== undefined
    },
    /**
     * The connection with the status and server info that its server gave; undefined if that must be asked first. A
     * mock is not probed, nor what lacks input. `signIn`: the draft as it is sent, with somebody's token.
     */
    probed(draft: Draft, signIn = async () => draft): Connection | undefined {
      const { connection, target, privatePart, inputRequired } = draft
      if (connection.mock?.enabled === true || connection.mcpUrl === null) {
        return { ...connection, status: { state: 'connected' } }
      }
      if (inputRequired !== undefined) return { ...connection, status: inputRequired }
      const question: Question = { target: JSON.stringify(target), tokens: privatePart.tokens }
      const isAnswered = known?.target === question.target && (known.tokens === question.tokens || asks >= asksMax)
      if (known !== undefined && isAnswered) return { ...connection, ...known.result }
      lacking = { ...question, signIn }
      return undefined
    },
    /**
     * Asks the server that the last decision lacked, if any. Throws `invalid_request` if its address must not be
     * reached; any other failure becomes the connection's status.
     */
    async ask(): Promise<void> {
      if (lacking === undefined) return
      const { signIn, ...question } = lacking
      lacking = undefined
      asks += 1
      const { url, headers } = (await signIn()).target
      try {
        const via = request.headers.get('via') ?? undefined
        known = { ...question, result: await probeServer(upstream, url, headers, { holder: caller, via }) }
      } catch (error) {
        if (error instanceof UpstreamError) throw invalidRequest(`mcpUrl: ${error.message}`)
        throw error
      }
    },
  }
}
