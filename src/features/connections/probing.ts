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

export interface Probing {
  /**
   * The connection with the status and server info that its server gave; undefined if that must be asked first. A mock
   * is not probed, nor what lacks input. `signIn`: the draft as it is sent, with somebody's token.
   */
  probed(draft: Draft, signIn?: () => Promise<Draft>): Connection | undefined
  /**
   * Asks the server that the last decision lacked, if any. Throws `invalid_request` if its address must not be reached;
   * any other failure becomes the connection's status.
   */
  ask(): Promise<void>
}

export function createProbing(upstream: Upstream, { caller, request }: RequestContext): Probing {
  let known: { readonly asked: string; readonly result: ProbeResult } | undefined
  let lacking: { readonly asked: string; readonly signIn: () => Promise<Draft> } | undefined

  return {
    probed(draft, signIn = async () => draft) {
      const { connection, target, privatePart, inputRequired } = draft
      if (connection.mock?.enabled === true || connection.mcpUrl === null) {
        return { ...connection, status: { state: 'connected' } }
      }
      if (inputRequired !== undefined) return { ...connection, status: inputRequired }
      const asked = JSON.stringify([target, privatePart.tokens])
      if (known?.asked === asked) return { ...connection, ...known.result }
      lacking = { asked, signIn }
      return undefined
    },
    async ask() {
      if (lacking === undefined) return
      const { asked, signIn } = lacking
      lacking = undefined
      const { url, headers } = (await signIn()).target
      try {
        const via = request.headers.get('via') ?? undefined
        known = { asked, result: await probeServer(upstream, url, headers, { holder: caller, via }) }
      } catch (error) {
        if (error instanceof UpstreamError) throw invalidRequest(`mcpUrl: ${error.message}`)
        throw error
      }
    },
  }
}
