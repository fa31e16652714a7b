/** Headers of answers, and answers of ready JSON. */

export const json = 'application/json'

/** Of lists and details: they differ by caller, so no shared cache may keep them. */
export const privateJson = {
  'content-type': json,
  'cache-control': 'private, no-cache',
  vary: 'authorization, origin',
} as const

/** Of what may be another thing the next time. */
export const freshJson = { 'content-type': json, 'cache-control': 'no-store' } as const

/** Of a stream of events. nginx would keep them until the stream ends. */
export const eventStream = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-store',
  'x-accel-buffering': 'no',
} as const

/** An answer of ready JSON. */
export function jsonResponse(body: Uint8Array | string, headers: Record<string, string> = {}): Response {
  return new Response(body as ConstructorParameters<typeof Response>[0], {
    headers: { 'content-type': json, ...headers },
  })
}

/** RFC 9110, 13.1.2: a list of tags, compared weakly. */
export function isUnchanged(request: Request, etag: string | undefined): boolean {
  const known = request.headers.get('if-none-match')
  return known !== null && etag !== undefined && (known === '*' || known.includes(etag))
}
