/** Requests to MCP servers elsewhere: to an address that was looked at, without redirects, within a time, and never unpacked. */

import { AddressError, type Addresses } from './addresses.ts'

/** `refused`: we may not go there. `down`: there was no answer that can be used. `late`: none in time. */
export class UpstreamError extends Error {
  override readonly name = 'UpstreamError'
  readonly kind: 'refused' | 'down' | 'late'
  constructor(kind: UpstreamError['kind'], message: string, options?: ErrorOptions) {
    super(message, options)
    this.kind = kind
  }
}

export interface UpstreamRequest {
  readonly url: string
  readonly method?: 'POST' | 'GET' | 'DELETE'
  readonly headers: Headers
  readonly body?: Uint8Array | string
  /** Whoever asked has gone. */
  readonly signal?: AbortSignal
  /** Milliseconds to the head of the answer. */
  readonly patience: number
}

export interface Upstream {
  /** The answer as it comes: a redirect is an answer, and what is compressed stays so. Throws UpstreamError. */
  send(request: UpstreamRequest): Promise<Response>
}

/** Told of each request how it ended, in seconds to the head of the answer: the status, or the kind of the error. */
export type ObserveUpstream = (outcome: string, seconds: number) => void

export function createUpstream(addresses: Addresses, observe?: ObserveUpstream): Upstream {
  const upstream = reaching(addresses)
  if (observe === undefined) return upstream
  return {
    async send(request) {
      const from = performance.now()
      const note = (outcome: string) => observe(outcome, (performance.now() - from) / 1000)
      try {
        const response = await upstream.send(request)
        note(String(response.status))
        return response
      } catch (error) {
        note(error instanceof UpstreamError ? error.kind : 'down')
        throw error
      }
    },
  }
}

function reaching(addresses: Addresses): Upstream {
  return {
    async send({ url, method = 'POST', headers, body, signal, patience }) {
      const target = new URL(url)
      const host = target.host
      const { hostname, protocol } = target
      try {
        target.hostname = (await addresses.destinationOf(target)).address
      } catch (error) {
        if (!(error instanceof AddressError)) throw error
        throw new UpstreamError(error.kind === 'refused' ? 'refused' : 'down', `${hostname} ${error.message}`)
      }
      headers.set('host', host)
      // Nothing is unpacked here, so nothing small may become large.
      headers.set('accept-encoding', 'identity')
      const late = new AbortController()
      const timer = setTimeout(() => late.abort(), patience)
      try {
        return await fetch(target, {
          method,
          headers,
          redirect: 'manual',
          decompress: false,
          signal: signal === undefined ? late.signal : AbortSignal.any([late.signal, signal]),
          ...(body !== undefined && { body: body as string }),
          // The certificate is that of the name, whatever address we connect to.
          ...(protocol === 'https:' && { tls: { serverName: hostname } }),
        } as RequestInit)
      } catch (error) {
        if (late.signal.aborted) throw new UpstreamError('late', `no answer within ${patience / 1000} s`)
        throw new UpstreamError('down', 'it takes no connection, or broke it off', { cause: error })
      } finally {
        clearTimeout(timer)
      }
    },
  }
}
