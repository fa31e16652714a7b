/** Headers of responses, and responses whose body is in memory. */

import { allowanceOf } from '../fairness/allowance.ts'
import { responseInOnePieceBytesMax } from '../limits.ts'

/** A piece of a large response, written when its client is ready. Past it: the next piece. */
export const responsePieceBytes = 64 * 1024

export const json = 'application/json'

/**
 * Bytes of an answer that takes no time to speak of. Past it: as for `ownerTimeShare`, as thousands a second leave so
 * much garbage that everything stops for it.
 */
const countedBytesMin = 32 * 1024
/** Milliseconds for a byte of such an answer, which is made of hundreds of objects. */
const answerMsPerByte = 4 / 2 ** 20

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

/** A small response whose body is JSON text already. */
export function jsonResponse(body: Uint8Array | string, headers: Record<string, string> = {}): Response {
  return new Response(body as ConstructorParameters<typeof Response>[0], {
    headers: { 'content-type': json, ...headers },
  })
}

/**
 * The response, behind which the connection ends if the request has chunks that nobody reads. The runtime would parse
 * them without end: 40 clients that sent them one byte each held everybody for 300 ms. The end of a connection may take
 * a part of a long response along; one that is not an error has waited for the chunks (`hasUnreadChunksEnded`).
 */
export function endUnreadChunks(request: Request, response: Response): Response {
  if (request.headers.has('transfer-encoding') && !request.bodyUsed) response.headers.set('connection', 'close')
  return response
}

interface ResponseParts {
  readonly status?: number
  readonly headers?: Headers | Readonly<Record<string, string>>
  /** If the client has this one already, the response is a 304. */
  readonly etag?: string | undefined
}

/**
 * The response to a request, of any size: a large one counts for the request's owner until its client has read it. A
 * 304 takes its owner's time too, because the body was made. Throws `rate_limited` if the owner's share of memory is
 * used up.
 */
export function wholeResponse(
  request: Request,
  body: Uint8Array | string,
  { status = 200, headers: given = privateJson, etag }: ResponseParts = {},
): Response {
  const headers = etag === undefined ? given : new Headers(given)
  if (etag !== undefined) (headers as Headers).set('etag', etag)
  const isLarge = body.length > responseInOnePieceBytesMax
  const bytes = isLarge && typeof body === 'string' ? Buffer.from(body) : body
  const onRead = isLarge ? allowanceOf(request).takeAnswer(bytes.length) : undefined
  if (!isLarge && body.length > countedBytesMin) allowanceOf(request).spendAtOnce(body.length * answerMsPerByte)
  if (isUnchanged(request, etag)) {
    onRead?.()
    return new Response(null, { status: 304, headers })
  }
  const whole = bytes as ConstructorParameters<typeof Response>[0]
  return new Response(onRead === undefined ? whole : streamInPieces(bytes as Uint8Array, onRead), { status, headers })
}

/** Bytes in pieces, each when the client is ready. `onEnd` is called once: at the end, or if the client has left. */
export function streamInPieces(bytes: Uint8Array, onEnd: () => void): ReadableStream<Uint8Array> {
  let at = 0
  let hasEnded = false
  const end = () => {
    if (!hasEnded) onEnd()
    hasEnded = true
  }
  return new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        controller.enqueue(bytes.subarray(at, at + responsePieceBytes))
        at += responsePieceBytes
        if (at < bytes.length) return
        controller.close()
        end()
      },
      cancel: end,
    },
    { highWaterMark: 0 },
  )
}

/** Whether `If-None-Match` has the ETag (RFC 9110, 13.1.2: a list, compared weakly): then the response is a 304. */
export function isUnchanged(request: Request, etag: string | undefined): boolean {
  const known = request.headers.get('if-none-match')
  return known !== null && etag !== undefined && (known === '*' || known.includes(etag))
}
