/** Headers of responses, and JSON responses. */

export const json = 'application/json'

/** For lists and details: they differ by caller, so shared caches must not store them, and others must revalidate. */
export const privateJson = {
  'content-type': json,
  'cache-control': 'private, no-cache',
  vary: 'authorization, origin',
} as const

/** For JSON that must not be cached. */
export const noStoreJson = { 'content-type': json, 'cache-control': 'no-store' } as const

/** For event streams. Without `X-Accel-Buffering`, nginx buffers events until the stream ends. */
export const eventStream = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-store',
  'x-accel-buffering': 'no',
} as const

/** For what was done and has nothing to show. */
export function doneResponse(): Response {
  return new Response('{"success":true}', { headers: privateJson })
}

/** A response whose body is JSON text already. */
export function jsonResponse(body: Uint8Array | string, headers: Record<string, string> = {}): Response {
  return new Response(body as ConstructorParameters<typeof Response>[0], {
    headers: { 'content-type': json, ...headers },
  })
}

/**
 * Whether `If-None-Match` contains the ETag (RFC 9110, 13.1.2: a list, weak comparison). Then the response is a 304.
 */
export function isUnchanged(request: Request, etag: string | undefined): boolean {
  const known = request.headers.get('if-none-match')
  return known !== null && etag !== undefined && (known === '*' || known.includes(etag))
}
