/**
 * `GET /openapi.json`, `GET /docs`, and `GET /` which leads there: what the platform says of itself, to anybody.
 * Browsers ask it for an icon too.
 */

import { refuseQuery } from '../../http/query.ts'
import { jsonResponse } from '../../http/respond.ts'
import type { Handlers } from '../../http/router.ts'
import { openApiDocument } from './document.ts'
import { docsPage, docsPolicy } from './page.ts'

const cached = { 'cache-control': 'public, max-age=300' }

export function referenceHandlers(baseUrl: string): Pick<Handlers, 'home' | 'openApi' | 'docs' | 'icon'> {
  // A proxy may serve this under a path, which the base URL has and the request no longer.
  const docsPath = `${new URL(baseUrl).pathname.replace(/\/$/, '')}/docs`
  // Made when first asked for: most starts are not asked.
  let document: object | undefined
  const made = () => {
    document ??= openApiDocument(baseUrl)
    return document
  }
  return {
    home(request) {
      refuseQuery(request.url)
      return new Response(null, { status: 302, headers: { location: docsPath } })
    },
    openApi(request) {
      refuseQuery(request.url)
      return jsonResponse(JSON.stringify(made()), cached)
    },
    docs(request) {
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
    },
    icon: () => new Response(null, { status: 204, headers: cached }),
  }
}
