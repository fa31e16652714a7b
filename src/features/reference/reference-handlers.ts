/**
 * `GET /openapi.json`, `GET /docs` and its pages, and `GET /`, which redirects there. None needs a credential. Browsers
 * request an icon too; that response is empty.
 */

import { notFound } from '../../errors.ts'
import { escapeHtml } from '../../http/html.ts'
import { namesInPath } from '../../http/path.ts'
import { refuseQuery } from '../../http/query.ts'
import { jsonResponse } from '../../http/respond.ts'
import type { Handlers } from '../../http/router.ts'
import { apiPage } from './api-page.ts'
import { openApiDocument } from './document.ts'
import { docsPolicy } from './frame.ts'

type ReferenceHandlers = Pick<Handlers, 'home' | 'openApi' | 'docs' | 'apiReference' | 'document' | 'icon'>

const cached = { 'cache-control': 'public, max-age=300' }

export function referenceHandlers(baseUrl: string): ReferenceHandlers {
  // A proxy may publish the platform under a path, and strip that path from requests; links must contain it.
  const basePath = new URL(baseUrl).pathname.replace(/\/$/, '')
  // Built on first use; most processes never need it.
  let document: object | undefined
  const madeDocument = () => {
    document ??= openApiDocument(baseUrl)
    return document
  }
  const pages = new Map<string, string>()

  /** Rendered at the first request; undefined for a document that does not exist. */
  async function pageOf(name: string | undefined): Promise<string | undefined> {
    const { documents, indexDocument } = await import('./documents.ts')
    const markdown = name === undefined ? indexDocument : documents.get(name)
    if (markdown === undefined) return undefined
    const { documentPage } = await import('./document-page.ts')
    const key = name ?? ''
    const names = new Set(documents.keys())
    const page = pages.get(key) ?? documentPage({ markdown, names, basePath: escapeHtml(basePath) })
    pages.set(key, page)
    return page
  }

  return {
    home(request) {
      refuseQuery(request.url)
      return new Response(null, { status: 302, headers: { location: `${basePath}/docs` } })
    },
    openApi(request) {
      refuseQuery(request.url)
      return jsonResponse(JSON.stringify(madeDocument()), cached)
    },
    async docs(request) {
      refuseQuery(request.url)
      return pageResponse(await pageOf(undefined))
    },
    apiReference(request) {
      refuseQuery(request.url)
      return pageResponse(apiPage(madeDocument(), basePath))
    },
    async document(request) {
      const [page = ''] = namesInPath(request.url)
      const html = await pageOf(page) // 404
      refuseQuery(request.url) // 400
      return pageResponse(html)
    },
    icon: () => new Response(null, { status: 204, headers: cached }),
  }
}

/** Throws 404 if `html` is undefined. */
function pageResponse(html: string | undefined): Response {
  if (html === undefined) throw notFound()
  return new Response(html, {
    headers: {
      ...cached,
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': docsPolicy,
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
    },
  })
}
