/** The HTTP/1.1 clients: what one promises, the other does too. */

import { describe } from 'bun:test'
import { type ClientName, clientNames } from '../../src/upstream/client-names.ts'
import { chooseClient } from '../../src/upstream/clients.ts'
import type { OpenHttpConnection } from '../../src/upstream/http-connection.ts'

const clients = await Promise.all(
  clientNames.map(async (name) => {
    const open = await chooseClient(name, () => {
      throw new Error('this runtime has no parser of HTTP that we know')
    })
    return { name, open }
  }),
)

/** The same tests for each of them. */
export function eachClient(define: (open: OpenHttpConnection, name: ClientName) => void): void {
  for (const { name, open } of clients) describe(`with the client ${name}`, () => define(open, name))
}
