/** Response bodies that are in memory as a whole, so that code can look at them without consuming the response. */

const bodies = new WeakMap<Response, Uint8Array | string>()

/** Notes the body that the response was made from. */
export function withKnownBody(response: Response, body: Uint8Array | string): Response {
  bodies.set(response, body)
  return response
}

/** Undefined for a response whose body is a stream, or was not noted. */
export function knownBody(response: Response): Uint8Array | string | undefined {
  return bodies.get(response)
}
