/** The HTTP/1.1 clients: what one promises, the other does too. */

import { describe } from 'bun:test'
import { type ClientName, clientNames } from '../../src/upstream/client-names.ts'
import { chooseClient } from '../../src/upstream/clients.ts'
import type { OpenWire } from '../../src/upstream/wire.ts'

const clients = await Promise.all(
  clientNames.map(async (name) => {
    const open = await chooseClient(name, () => {
      throw new Error('this runtime has no parser of HTTP that we know')
    })
    return { name, open }
  }),
)

/** The same tests for each of them. */
export function eachClient(define: (open: OpenWire, name: ClientName) => void): void {
  for (const { name, open } of clients) describe(`with the client ${name}`, () => define(open, name))
}
