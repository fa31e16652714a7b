/**
 * A request's JSON body, read strictly: a body that could not be read is always an error and never "no
 * body" (contract 3).
 */

import { invalidRequest } from '../errors.ts'
import { jsonDepthMax, requestBodyBytesMax, rpcKeysMax, rpcValuesMax } from '../limits.ts'
import { bodyProblemText } from '../schema/check.ts'
import { type JsonBounds, reading, readJsonBytes } from '../schema/json.ts'

export interface BodyBounds {
  readonly bytesMax: number
  readonly depthMax: number
  readonly tooLarge: () => Error
  /** Reads a large one when it is its turn; at once without it. */
  readonly inTurns?: <T>(work: Generator<number, T>) => Promise<T>
}

const ordinary: BodyBounds = {
  bytesMax: requestBodyBytesMax,
  depthMax: jsonDepthMax,
  tooLarge: () => invalidRequest(`the body is too large: at most ${requestBodyBytesMax} bytes are read`),
}

/** The body's value, or undefined for zero bytes. Throws `invalid_request`, and what `tooLarge` makes. */
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

/**
 * Reads no more than may be kept, whatever length was announced or not. Throws what `tooLarge` makes, or
 * `invalid_request`.
 */
export async function readBytes(
  request: Request,
  bytesMax: number,
  tooLarge: () => Error,
): Promise<Uint8Array<ArrayBuffer>> {
  const announced = Number(request.headers.get('content-length') ?? Number.NaN)
  if (announced > bytesMax) throw tooLarge()
  // The client broke off: nobody is left to read this, and nothing is wrong on our side.
  const brokenOff = () => invalidRequest('the request body ended before its announced length')
  // The runtime reads no further than what was announced. In one piece, and before `body` makes a stream of it.
  if (announced >= 0) {
    try {
      return (await request.bytes()) as Uint8Array<ArrayBuffer>
    } catch {
      throw brokenOff()
    }
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

/** Parameters are fine, whatever they are: the body itself must be UTF-8. */
export function isJson(contentType: string | null | undefined): boolean {
  return contentType === 'application/json' || mediaType(contentType) === 'application/json'
}

/** In small letters, without its parameters. */
export function mediaType(contentType: string | null | undefined): string | undefined {
  return contentType?.split(';', 1)[0]?.trim().toLowerCase()
}
