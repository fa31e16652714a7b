/**
 * The framework reads a handler's text: where it finds a call after `return` or `=>`, it awaits what the handler gives,
 * and that costs a busy server two microseconds a request, whether or not there was a promise. A bound function shows no
 * text. A promise is still waited for: the framework looks at what came back, and the edge answers what it rejects with.
 */

import type { Soon } from '../model/soon.ts'

/** For a handler that mostly has its answer at once. It is given the request alone: what else it names is not seen. */
export function atOnce(handle: (context: { readonly request: Request }) => Soon<Response>): typeof handle {
  return handle.bind(undefined)
}
