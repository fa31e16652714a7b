/** Reads JSON bodies strictly: one that cannot be read is an error, and never treated as absent (contract, 3.5). */

import { invalidRequest, PlatformError } from '../errors.ts'
import { allowanceOf } from '../fairness/allowance.ts'
import { smallBodyBytes } from '../fairness/owner.ts'
import { receivedInPass } from '../fairness/passes.ts'
import { jsonDepthMax, rpcKeysMax, rpcValuesMax } from '../limits.ts'
import { bodyProblemText, type Validator } from '../schema/check.ts'
import { type JsonResult, parsing } from '../schema/json.ts'
import { within } from '../within.ts'

export interface BodyBounds {
  /** The maximum nesting of objects and lists. */
  readonly depthMax: number
  /** Values in all objects and arrays; `rpcValuesMax` if left out. */
  readonly valuesMax?: number
  /** Texts from which their hashes are looked at; `hashedTextsMin` if left out. */
  readonly hashedTextsMin?: number
  /** Makes the error for a body that is larger than the operation reads. */
  readonly tooLarge: TooLarge
}

type TooLarge = (bytesMax: number) => Error

/** 413, for operations that have it; ordinary ones answer 400. */
export function bodyTooLarge(bytesMax: number): PlatformError {
  return new PlatformError('too_large', `the body is too large: at most ${bytesMax} bytes are read`)
}

/** The bounds of most bodies. */
export const ordinaryBody: BodyBounds = {
  depthMax: jsonDepthMax,
  tooLarge: (bytesMax) => invalidRequest(`the body is too large: at most ${bytesMax} bytes are read`),
}

/** The parsed body; undefined if empty. Throws `invalid_request`, `rate_limited`, and the error from `tooLarge`. */
export async function readJsonBody(request: Request, bounds: BodyBounds = ordinaryBody): Promise<unknown> {
  const bytes = await readBytes(request, bounds.tooLarge)
  if (bytes.length === 0) return undefined
  if (!isJson(request.headers.get('content-type')))
    throw invalidRequest('content-type: must be application/json for a request with a body')
  const read = await parseJson(request, bytes, bounds)
  if ('problem' in read) throw invalidRequest(bodyProblemText(read.problem))
  return read.value
}

/** Parses what a request's body has, in its owner's turns. Throws `rate_limited`. */
export async function parseJson(
  request: Request,
  bytes: Uint8Array,
  { depthMax, valuesMax = rpcValuesMax, hashedTextsMin }: BodyBounds,
): Promise<JsonResult> {
  const owner = allowanceOf(request)
  const bounds = { depthMax, keysMax: rpcKeysMax, valuesMax, hashedTextsMin, numbers: 'exact', owner } as const
  return owner.parseBody(parsing(bytes, bounds))
}

/** The body of a request that needs none: no body and `null` are `{}`. Throws what `readJsonBody` throws. */
export async function readOptionalBody<T>(request: Request, shape: Validator<T>, bounds?: BodyBounds): Promise<T> {
  const body = (await readJsonBody(request, bounds)) ?? {}
  if (shape.isValid(body)) return body
  throw invalidRequest(bodyProblemText(shape.firstProblem(body)))
}

/** For operations that take no body: `null` and `{}` are none. `hint` follows the error. Throws `invalid_request`. */
export async function refuseBody(request: Request, hint = ''): Promise<void> {
  const body = (await readJsonBody(request)) ?? {}
  if (JSON.stringify(body) !== '{}') throw invalidRequest(`the body must be empty${hint}`)
}

/**
 * Reads as many bytes as the operation may have (`operations.ts`), with or without a `Content-Length`. Their memory is
 * taken before they are read. Throws the error from `tooLarge`, `rate_limited` if the owner's share of memory is used
 * up, and `invalid_request` if the client disconnects.
 */
export async function readBytes(request: Request, tooLarge: TooLarge): Promise<Uint8Array<ArrayBuffer>> {
  const allowance = allowanceOf(request)
  const { bodyBytesMax } = allowance.costs
  if (Number(request.headers.get('content-length')) > bodyBytesMax) throw tooLarge(bodyBytesMax)
  const expected = allowance.takeAnnouncedBody()
  // By the runtime, no further than `Content-Length` or `chunkedBodyBytesMax`. Never chunk by chunk: a client may send a
  // megabyte in chunks of one byte, each of which would be an object and a turn of its own.
  const reading = request.bytes().catch(() => {
    // The client disconnected, so this response is not read; but it must not count as an internal error.
    throw invalidRequest('the request body ended before its announced length')
  })
  const bytes = (await receivedInPass(allowance, reading)) as Uint8Array<ArrayBuffer>
  if (bytes.length > expected) allowance.takeBody(bytes.length - expected)
  if (bytes.length > bodyBytesMax) throw tooLarge(bodyBytesMax)
  if (bytes.length > smallBodyBytes) await allowance.paceBody(bytes.length)
  return bytes
}

/** Ours: milliseconds in which the end of a chunked body must arrive if the operation takes no body; a client sends this end with the head, or a moment later. Past it: 400, and postern closes the connection. For a `GET` with a chunked body, postern closes the connection at once. */
const unreadChunksMs = 50

/**
 * Waits for the end of a body in chunks that nobody reads, if there is one, and says whether it has ended. Behind an
 * answer the runtime would parse it without end; and where the connection is closed before that end has arrived, the
 * client loses what it has not received of the answer. Of a GET the runtime shows no body and no end.
 */
export async function hasUnreadChunksEnded(request: Request): Promise<boolean> {
  if (request.bodyUsed || !request.headers.has('transfer-encoding')) return true
  if (request.body === null) return false
  try {
    allowanceOf(request).takeAnnouncedBody() // 429
  } catch {
    return false
  }
  const ended = request.bytes().then(
    () => true,
    () => false,
  )
  return within(unreadChunksMs, ended, () => false)
}

/** Any parameters are accepted, `charset` included; the body must be UTF-8 in any case. */
export function isJson(contentType: string | null | undefined): boolean {
  return contentType === 'application/json' || mediaType(contentType) === 'application/json'
}

/** The media type in lower case, without parameters. */
export function mediaType(contentType: string | null | undefined): string | undefined {
  return contentType?.split(';', 1)[0]?.trim().toLowerCase()
}
