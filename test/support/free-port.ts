/** A port for a program that must be told one, and cannot tell which it got. */

import { createServer } from 'node:net'

/** One that the system has just given and got back. */
export function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' ? (address?.port ?? 0) : 0))
    })
  })
}
