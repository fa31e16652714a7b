/** Requests as spans, below the trace that the client names. */

import { operations } from '../operations.ts'
import type { Tracing } from '../ops/tracing.ts'
import type { Handler } from './handler.ts'
import { pathOf } from './path.ts'
import { operationOf } from './route.ts'

/** Without tracing, the handler itself. A span has the template of the path, never its names or its query. */
export function traceRequests(fetch: Handler, tracing: Tracing | undefined): Handler {
  if (tracing === undefined) return fetch
  return (request) => {
    const { method, headers } = request
    const operation = operationOf(method, pathOf(request.url))
    const route = operation === undefined ? undefined : operations[operation].path
    const given = { traceparent: headers.get('traceparent'), tracestate: headers.get('tracestate') ?? undefined }
    return tracing.span(
      {
        name: route === undefined ? method : `${method} ${route}`,
        kind: 'SERVER',
        attributes: { 'http.request.method': method, ...(route !== undefined && { 'http.route': route }) },
        given,
      },
      () => fetch(request),
      (response) => ({
        attributes: {
          'http.response.status_code': response.status,
          'postern.request_id': response.headers.get('x-request-id') ?? '',
        },
        ...(response.status >= 500 && { error: `status ${response.status}` }),
      }),
    )
  }
}
