/**
 * The application, from its source, on a store that seems to have changed since the last request: what a page costs
 * that must be made anew. Prints its port.
 *
 *   bun test/bench/changing.ts DATA_FOLDER
 */

import { createApp } from '../../src/app.ts'
import { systemClock } from '../../src/clock.ts'
import { createFairness } from '../../src/fairness/fairness.ts'
import { createGuard } from '../../src/http/guard.ts'
import { rawPathRoutes } from '../../src/http/raw-path.ts'
import { openDataFolder } from '../../src/maintenance/data-folder.ts'
import { keyOf } from '../../src/storage/keys.ts'
import type { Store } from '../../src/storage/store.ts'

const { store, secrets } = await openDataFolder(process.argv[2] ?? '')
const kind = keyOf('connectionsVersion', '')[0]
let commits = 0
const versionNow = (key: Uint8Array) => (key[0] === kind ? Buffer.from(String(commits)) : undefined)
const changing: Store = {
  ...store,
  get: async (key) => versionNow(key) ?? store.get(key),
  ...(store.local && {
    local: {
      ...store.local,
      commitCount: () => commits,
      get: (key) => versionNow(key) ?? store.local?.get(key),
    },
  }),
}
const issuer = 'http://localhost'
const guard = createGuard({ host: '127.0.0.1', baseUrl: issuer, corsOrigins: [], localAddresses: [] })
const log = { info() {}, warn: console.error, error: console.error }
const app = createApp({
  store: changing,
  secrets,
  issuer,
  guard,
  audit: {
    path: '/dev/null',
    requireWritable() {},
    requireRoom() {},
    record: async () => {},
    recordDone: async () => {},
    recordBestEffort() {},
  },
  rates: { mints: 0, failures: 0, writes: 0, calls: 0 },
  authorization: { isOn: false, redirectSchemes: [], hasClientDocument: true, takesDocuments: false },
  isRegistryOpen: false,
  namespacesPerUser: Number.POSITIVE_INFINITY,
  quota: { connections: Infinity, bytes: Infinity, servers: Infinity },
  upstreamTimeoutMs: 0,
  sockets: {
    ...{ wait: async () => {}, disableIdleTimeout: () => () => {}, connectionOf: () => 'one', addressOf: () => '' },
  },
  signers: { sign: () => Promise.reject(new Error('nothing is minted')) },
  fairness: createFairness(),
  upstream: { send: () => Promise.reject(new Error('nothing is sent')) },
  clock: systemClock,
  log,
})
const fetch = (request: Request) => {
  commits += 1
  return app.fetch(request)
}
const server = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  development: false,
  fetch,
  routes: rawPathRoutes(fetch),
})
console.log(server.port)
