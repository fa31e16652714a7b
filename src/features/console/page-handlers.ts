/** `/console` and everything below it: one document for all rooms, and its files (contract, 23.3). */

import type { SharedParts } from '../../auth/shared-parts.ts'
import { notFound } from '../../errors.ts'
import { lastNameInPath } from '../../http/path.ts'
import { wholeResponse } from '../../http/respond.ts'
import { bundleConsole } from './bundle.ts'

export function consolePageHandlers({ consoleSessions, base }: SharedParts) {
  // Made when somebody first asks, since most processes never show a console.
  let made: ReturnType<typeof makeFiles> | undefined
  const files = () => {
    if (consoleSessions === undefined) throw notFound()
    made ??= makeFiles()
    return made
  }
  const showDocument = async (request: Request) => documentResponse(request, base, await files())
  return {
    consolePage: showDocument,
    consoleRoom: showDocument,
    consoleAsset: async (request: Request) => assetResponse(request, await files()),
  }
}

type ConsoleFiles = Awaited<ReturnType<typeof makeFiles>>

/** As Blobs, because a Response does not copy them, and a stranger may ask again and again. */
async function makeFiles() {
  const { assets, ...rest } = await bundleConsole()
  const served = assets.map(({ name, type, gzip }) => {
    return { name, type, gzip: new Blob([gzip]), plain: new Blob([Bun.gunzipSync(gzip)]) }
  })
  return { ...rest, assets: served }
}

const headers = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
}

function documentResponse(request: Request, base: string, { script, style }: ConsoleFiles): Response {
  const below = new URL(base).pathname.replace(/\/$/, '')
  const files = `${below}/console/assets`
  const text = `<!doctype html>
<html lang="en" data-base="${below}">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>postern</title>
<link rel="icon" href="${below}/favicon.ico"><link rel="stylesheet" href="${files}/${style}">
<script type="module" src="${files}/${script}"></script></head>
<body><noscript>The console needs JavaScript. The commands do the same:
see <a href="${below}/docs">the documentation</a>.</noscript></body>
</html>
`
  const etag = `"${Bun.hash(text).toString(36)}"`
  const all = { ...headers, 'cache-control': 'no-cache', 'content-type': 'text/html; charset=utf-8' }
  return wholeResponse(request, text, { headers: all, etag })
}

function assetResponse(request: Request, { assets }: ConsoleFiles): Response {
  const name = lastNameInPath(request.url)
  const asset = assets.find((one) => one.name === name)
  if (asset === undefined) throw notFound()
  const isZipped = /\bgzip\b/.test(request.headers.get('accept-encoding') ?? '')
  const encoding = isZipped ? { 'content-encoding': 'gzip' } : {}
  return new Response(isZipped ? asset.gzip : asset.plain, {
    headers: {
      ...headers,
      'content-type': asset.type,
      'cache-control': 'public, max-age=31536000, immutable',
      vary: 'accept-encoding',
      ...encoding,
    },
  })
}
