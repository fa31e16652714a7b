/** A port that nothing listens on, for what cannot be told to choose one itself. */

import { createServer } from 'node:net'

/**
 * Below the ports that the system gives to whoever asks for any, so that no other test gets it in the meantime.
 */
export function freePort(): Promise<number> {
  const port = 12_000 + Math.floor(Math.random() * 20_000)
  return new Promise((resolve) => {
    const server = createServer()
      .once('error', () => resolve(freePort()))
      .listen(port, '127.0.0.1', () => server.close(() => resolve(port)))
  })
}
