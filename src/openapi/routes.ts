/** `GET /openapi.json`, `GET /docs`, and `GET /` which leads there: what the platform says of itself, to anybody. */

import { Elysia } from 'elysia'
import { refuseQuery } from '../http/query.ts'
import { jsonResponse } from '../http/respond.ts'
import { docsPage, docsPolicy } from './docs.ts'
import { openApiDocument } from './document.ts'

const cached = { 'cache-control': 'public, max-age=300' }

export function openApiRoutes(baseUrl: string) {
  // A proxy may serve this under a path, which the base URL has and the request no longer.
  const docsPath = `${new URL(baseUrl).pathname.replace(/\/$/, '')}/docs`
  // Made when first asked for: most starts are not asked.
  let document: object | undefined
  const made = () => {
    document ??= openApiDocument(baseUrl)
    return document
  }
  return new Elysia({ name: 'openapi' })
    .get('/', ({ request }) => {
      refuseQuery(request.url)
      return new Response(null, { status: 302, headers: { location: docsPath } })
    })
    .get('/openapi.json', ({ request }) => {
      refuseQuery(request.url)
      return jsonResponse(JSON.stringify(made()), cached)
    })
    .get('/docs', ({ request }) => {
      refuseQuery(request.url)
      return new Response(docsPage(made()), {
        headers: {
          ...cached,
          'content-type': 'text/html; charset=utf-8',
          'content-security-policy': docsPolicy,
          'x-content-type-options': 'nosniff',
          'referrer-policy': 'no-referrer',
        },
      })
    })
}
