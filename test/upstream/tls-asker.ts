/** Asks the server at a port of this machine by its address and by a name that its certificate does not bear; prints what it got. */

import { createAddresses, readAllowedUpstream } from '../../src/upstream/addresses.ts'
import { createUpstream } from '../../src/upstream/pooled-upstream.ts'
import { UpstreamError } from '../../src/upstream/upstream.ts'

const holder = { keyId: 'key', family: 'key' }

const [port] = process.argv.slice(2)
const addresses = createAddresses({
  allowed: [readAllowedUpstream('127.0.0.1')].flatMap((one) => one ?? []),
  isPublicAllowed: false,
  isSelf: () => false,
  resolve: async () => ['127.0.0.1'],
})
const upstream = createUpstream(addresses)
const got: Record<string, number | string> = {}
for (const host of ['127.0.0.1', 'tools.lan']) {
  try {
    const url = `https://${host}:${port}/`
    got[host] = (await upstream.send({ holder, url, headers: {}, body: '{}', timeoutMs: 60_000 })).status
  } catch (error) {
    got[host] = error instanceof UpstreamError ? error.kind : String(error)
  }
}
console.log(JSON.stringify(got))
process.exit(0)
