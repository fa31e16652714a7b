/** `GET /openapi.json`, `GET /docs` and its pages, and `GET /`, which redirects there. None needs a credential. */

import { notFound } from '../../errors.ts'
import type { Handlers } from '../../http/handler.ts'
import { escapeHtml } from '../../http/html.ts'
import { namesInPath } from '../../http/path.ts'
import { refuseQuery } from '../../http/query.ts'
import { json } from '../../http/respond.ts'
import { apiIndex, apiPage } from './api-page.ts'
import { openApiDocument } from './document.ts'
import { docsPolicy } from './frame.ts'

type ReferenceHandlers = Pick<Handlers, 'home' | 'openApi' | 'docs' | 'apiReference' | 'document' | 'icon'>

const cached = { 'cache-control': 'public, max-age=300' }

/** The pages of the documentation, and the files of its search. */
function createPages(baseUrl: string, basePath: string) {
  /** Pages by path, made at their first request, as most processes need none. Blobs, which a Response does not copy. */
  const made = new Map<string, Blob>()
  function kept(path: string, make: () => string | Buffer<ArrayBuffer>): Blob {
    const page = made.get(path) ?? new Blob([make()])
    made.set(path, page)
    return page
  }

  /** Undefined for a document that does not exist. */
  async function pageOf(name: string | undefined): Promise<Blob | undefined> {
    const { documents, pageList: pages, files } = await import('./documents.ts')
    const markdown = name === 'README' ? undefined : documents.get(name ?? 'README')
    if (markdown === undefined) return undefined
    const { documentPage } = await import('./document-page.ts')
    const shared = { pages, basePath: escapeHtml(basePath) }
    const site = { names: new Set(documents.keys()), files: new Set(files.keys()), ...shared }
    const path = name === undefined ? '/docs' : `/docs/${name}`
    return kept(path, () => documentPage(markdown, path, site))
  }

  /** The index of the pages' search: the documents, and the operations of the API. */
  async function searchIndexOf(): Promise<Blob> {
    const { searchIndex } = await import('./documents.ts')
    const entries = () => [...searchIndex(), ...apiIndex(openApiDocument(baseUrl))]
    return kept('/docs/index.json', () => JSON.stringify(entries()))
  }

  return { kept, pageOf, searchIndexOf }
}

export function referenceHandlers(baseUrl: string): ReferenceHandlers {
  // A proxy may publish the platform under a path, and strip that path from requests; links must contain it.
  const basePath = new URL(baseUrl).pathname.replace(/\/$/, '')
  const { kept, pageOf, searchIndexOf } = createPages(baseUrl, basePath)
  return {
    home(request) {
      refuseQuery(request.url)
      return new Response(null, { status: 302, headers: { location: `${basePath}/docs` } })
    },
    openApi(request) {
      refuseQuery(request.url)
      const document = kept('/openapi.json', () => JSON.stringify(openApiDocument(baseUrl)))
      return cachedResponse(document, json)
    },
    async docs(request) {
      refuseQuery(request.url)
      return pageResponse(await pageOf(undefined))
    },
    async apiReference(request) {
      refuseQuery(request.url)
      const { pageList } = await import('./documents.ts')
      return pageResponse(kept('/docs/api', () => apiPage(openApiDocument(baseUrl), basePath, pageList)))
    },
    async document(request) {
      const [page = ''] = namesInPath(request.url)
      const { files } = await import('./documents.ts')
      const file = files.get(page)
      if (file !== undefined) {
        refuseQuery(request.url) // 400
        const content = kept(page, () => Buffer.from(file.content, 'base64'))
        return cachedResponse(content, file.type, fileHeaders)
      }
      const isSearch = page === 'index.json'
      const html = isSearch ? undefined : await pageOf(page)
      refuseQuery(request.url) // 400
      return isSearch ? cachedResponse(await searchIndexOf(), json) : pageResponse(html) // 404
    },
    // Browsers ask for it.
    icon: () => new Response(null, { status: 204, headers: cached }),
  }
}

/** A picture may be an SVG, which a browser also opens as a document. */
const fileHeaders = {
  'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; sandbox",
  'x-content-type-options': 'nosniff',
}
const pageHeaders = {
  'content-security-policy': docsPolicy,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
}

function cachedResponse(content: Blob, type: string, headers: Record<string, string> = {}): Response {
  return new Response(content, { headers: { ...cached, 'content-type': type, ...headers } })
}

/** Throws 404 if `html` is undefined. */
function pageResponse(html: Blob | undefined): Response {
  if (html === undefined) throw notFound()
  return cachedResponse(html, 'text/html; charset=utf-8', pageHeaders)
}
