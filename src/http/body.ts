/**
 * Reads JSON bodies strictly. A body that cannot be read is always an error, and never treated as absent (contract 3).
 */

import { invalidRequest } from '../errors.ts'
import { jsonDepthMax, requestBodyBytesMax, rpcKeysMax, rpcValuesMax } from '../limits.ts'
import { bodyProblemText, type Validator } from '../schema/check.ts'
import { type JsonBounds, reading, readJsonBytes } from '../schema/json.ts'

export interface BodyBounds {
  readonly bytesMax: number
  /** The maximum nesting of objects and lists. */
  readonly depthMax: number
  /** Makes the error for a body above `bytesMax`. */
  readonly tooLarge: () => Error
  /** Parses the body in turns (`turns.ts`); at once if left out. */
  readonly inTurns?: <T>(work: Generator<number, T>) => Promise<T>
}

const ordinary: BodyBounds = {
  bytesMax: requestBodyBytesMax,
  depthMax: jsonDepthMax,
  tooLarge: () => invalidRequest(`the body is too large: at most ${requestBodyBytesMax} bytes are read`),
}

/** The parsed body; undefined if it is empty. Throws `invalid_request`, and the error from `tooLarge`. */
export async function readJsonBody(
  request: Request,
  { bytesMax, depthMax, tooLarge, inTurns }: BodyBounds = ordinary,
): Promise<unknown> {
  const bytes = await readBytes(request, bytesMax, tooLarge)
  if (bytes.length === 0) return undefined
  if (!isJson(request.headers.get('content-type'))) {
    throw invalidRequest('content-type: must be application/json for a request with a body')
  }
  const bounds: JsonBounds = { depthMax, keysMax: rpcKeysMax, valuesMax: rpcValuesMax, numbers: 'exact' }
  const readNow = () => readJsonBytes(bytes, bounds)
  const read = inTurns === undefined ? readNow() : await inTurns(reading(bytes.length, readNow))
  if ('problem' in read) {
    const { problem } = read
    throw invalidRequest(bodyProblemText(problem))
  }
  return read.value
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
 * Reads at most `bytesMax` bytes, with or without a `Content-Length`. Throws the error from `tooLarge`, and
 * `invalid_request` if the client disconnects.
 */
export async function readBytes(
  request: Request,
  bytesMax: number,
  tooLarge: () => Error,
): Promise<Uint8Array<ArrayBuffer>> {
  const announced = Number(request.headers.get('content-length') ?? Number.NaN)
  if (announced > bytesMax) throw tooLarge()
  // The client disconnected, so this response is not read; but it must not count as an internal error.
  const brokenOff = () => invalidRequest('the request body ended before its announced length')
  // The runtime reads no further than `Content-Length`. Faster than the stream, which `request.body` would create.
  if (announced >= 0) {
    const bytes = await request.bytes().catch(() => {
      throw brokenOff()
    })
    return bytes as Uint8Array<ArrayBuffer>
  }
  if (request.body === null) return new Uint8Array(0)
  const chunks: Uint8Array[] = []
  let length = 0
  let refused: Error | undefined
  try {
    for await (const chunk of request.body) {
      length += chunk.length
      if (length > bytesMax) {
        refused = tooLarge()
        break
      }
      chunks.push(chunk)
    }
  } catch {
    throw brokenOff()
  }
  if (refused !== undefined) throw refused
  return Buffer.concat(chunks)
}

/** Any parameters are accepted, `charset` included; the body must be UTF-8 in any case. */
export function isJson(contentType: string | null | undefined): boolean {
  return contentType === 'application/json' || mediaType(contentType) === 'application/json'
}

/** The media type in lower case, without parameters. */
export function mediaType(contentType: string | null | undefined): string | undefined {
  return contentType?.split(';', 1)[0]?.trim().toLowerCase()
}
