/** One server for all tests of a file or a `describe`. */

import { afterAll, beforeAll } from 'bun:test'
import { type Server, startServer } from './executable.ts'
import { type Workplace, workplace } from './workplace.ts'

/** What is read of it is there once tests run. */
export function sharedServer(args?: readonly string[]): { readonly place: Workplace; readonly server: Server } {
  let place: Workplace
  let server: Server
  beforeAll(async () => {
    place = workplace()
    server = await startServer(place, args)
  })
  afterAll(async () => {
    await server.kill('SIGKILL')
    place[Symbol.dispose]()
  })
  return {
    get place() {
      return place
    },
    get server() {
      return server
    },
  }
}
