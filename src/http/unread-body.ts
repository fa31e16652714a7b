/** Bodies that postern does not read because it refused the request; the runtime would receive them all the same. */

/** Ours: announced bytes of a body that postern does not read because it refused the request. Past it: postern closes the connection after a 404, 413 or 429, as it does for any body without `Content-Length`. */
const unreadBodyBytesMax = 64 * 1024

/** Whether the runtime should not receive the rest. */
export function mayBeLong({ headers }: Request): boolean {
  return headers.has('transfer-encoding') || Number(headers.get('content-length')) > unreadBodyBytesMax
}
