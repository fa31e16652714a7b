/** The smallest server that answers with the bytes of a file: what nobody can be faster than. It prints its port. */

import { readFileSync } from 'node:fs'

const bytes = readFileSync(process.argv[2] ?? '')
const headers = { 'content-type': 'application/json' }
const server = Bun.serve({
  ...{ port: 0, hostname: '127.0.0.1', idleTimeout: 0, development: false },
  async fetch(request) {
    await request.json()
    return new Response(bytes, { headers })
  },
})
console.log(server.port)
