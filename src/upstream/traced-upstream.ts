/** Makes a span of each request to an upstream, and passes the trace on to it in `traceparent`. */

import type { Tracing } from '../ops/tracing.ts'
import type { Upstream } from './upstream.ts'

/** Without tracing, the upstream itself. Paths are left out of spans: they may hold secrets. */
export function traceUpstream(upstream: Upstream, tracing: Tracing | undefined): Upstream {
  if (tracing === undefined) return upstream
  return {
    send: (request) => {
      const { hostname, port } = new URL(request.url)
      const attributes = {
        'http.request.method': request.method ?? 'POST',
        'server.address': hostname,
        ...(port !== '' && { 'server.port': Number(port) }),
      }
      return tracing.span(
        { name: `${request.method ?? 'POST'} ${hostname}`, kind: 'CLIENT', attributes },
        () => upstream.send({ ...request, headers: { ...request.headers, ...tracing.headers() } }),
        ({ status }) => ({
          attributes: { 'http.response.status_code': status },
          ...(status >= 500 && { error: `status ${status}` }),
        }),
      )
    },
  }
}
