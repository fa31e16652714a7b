/** The server's metrics, in the text format of Prometheus. */

import { STATUS_CODES } from 'node:http'
import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import type { CallOutcome } from '../model/recorded-call.ts'
import type { Store } from '../storage/store.ts'

/** Connections whose calls are counted one by one, since the server started. Past it: they are counted together. */
const callConnectionsMax = 1000

/** Counts events for metrics. Labels must come from fixed sets: each new value is a new time series. */
export type Observer = ReturnType<typeof createMetrics>['observer']

/** How many list pages were answered ready, and how many were made. */
export type PageCache = () => { readonly hits: number; readonly misses: number }

/** In seconds. A page takes about 50 µs, a mint 2 ms. */
const buckets = [0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5]

/** The store and the cache of pages are read when `/metrics` is requested. */
export function createMetrics(store: Store, pageCache: PageCache) {
  const registry = new Registry()
  const registers = [registry]
  const requests = new Histogram({
    name: 'postern_request_duration_seconds',
    help: 'Time from a whole request to its answer, by operation and status; its count is the number of requests',
    labelNames: ['operation', 'status'],
    buckets,
    registers,
  })
  const minted = new Counter({ name: 'postern_tokens_minted_total', help: 'Service tokens minted', registers })
  const refused = new Counter({
    name: 'postern_tokens_refused_total',
    help: 'Requests for a token that were refused, by the code of the answer',
    labelNames: ['reason'],
    registers,
  })
  const credentials = new Counter({
    name: 'postern_credentials_refused_total',
    help: 'Credentials that were not accepted, by the reason that the log names; limit: too many from one address',
    labelNames: ['reason'],
    registers,
  })
  const upstream = new Histogram({
    name: 'postern_upstream_request_duration_seconds',
    help: "Time to the head of an MCP server's answer, by its status, or: refused (an address that postern may not contact), down, late",
    labelNames: ['outcome'],
    buckets: [...buckets, 10, 60],
    registers,
  })

  const observer = {
    answered: (operation: string, status: number, seconds: number) => requests.observe({ operation, status }, seconds),
    minted: () => minted.inc(),
    /** Counts a request for a token that was refused; `reason` is the code of the error. */
    refused: (reason: string) => refused.inc({ reason }),
    credentialRefused: (reason: string) => credentials.inc({ reason }),
    called: countCalls(registers),
    /** Records a request to an upstream. `outcome` is the status of its response, or the reason why there is none. */
    upstreamResponded: (outcome: string, seconds: number) =>
      upstream.observe({ outcome: upstreamOutcome(outcome) }, seconds),
  }
  const readValues = readValuesOf(registers, store, pageCache)
  return {
    observer,
    async text() {
      await readValues()
      return registry.metrics()
    },
    contentType: registry.contentType,
  }
}

/** Sets what is counted elsewhere. */
function count(counter: Counter, value: number): void {
  counter.reset()
  counter.inc(value)
}

/** Values that are read when somebody asks. Returns the function that reads them. */
function readValuesOf(registers: Registry[], store: Store, pageCache: PageCache): () => Promise<void> {
  const gauge = (name: string, help: string) => new Gauge({ name, help, registers })
  const ready = gauge('postern_store_ready', 'Whether the store works: 1, or 0')
  const bytes = gauge('postern_store_bytes', 'Size of the store on disk')
  const help = 'Whether each acknowledged write is on another machine too: 1, or 0'
  const replicated = gauge('postern_store_replicated', help)
  const offset = gauge('postern_clock_offset_seconds', "How far the store's clock is ahead of this machine's")
  const counter = (name: string, help: string) => new Counter({ name, help, registers })
  const hits = counter('postern_page_cache_hits_total', 'List pages answered from the cache')
  const misses = counter('postern_page_cache_misses_total', 'List pages that were not in the cache')
  const memory = gauge('process_resident_memory_bytes', 'Resident memory')
  const processor = counter('process_cpu_seconds_total', 'Processor time, user and system')
  return async () => {
    try {
      const found = await store.health()
      ready.set(1)
      bytes.set(found.bytes)
      replicated.set(found.durability === 'replicated' ? 1 : 0)
      offset.set(found.clockOffsetMs / 1000)
    } catch {
      // The earlier measurements stay; this shows that they are old.
      ready.set(0)
    }
    const pages = pageCache()
    count(hits, pages.hits)
    count(misses, pages.misses)
    memory.set(process.memoryUsage.rss())
    const { user, system } = process.cpuUsage()
    count(processor, (user + system) / 1e6)
  }
}

/** A server may answer any number: statuses that HTTP does not know are counted together, as `2xx` to `9xx`. */
function upstreamOutcome(outcome: string): string {
  return /^\d+$/.test(outcome) && !(outcome in STATUS_CODES) ? `${outcome.charAt(0)}xx` : outcome
}

/** Counts calls of tools. Connections beyond `callConnectionsMax` are counted together: each is a time series. */
function countCalls(registers: Registry[]) {
  const calls = new Counter({
    name: 'postern_tool_calls_total',
    help: 'Calls of tools, by outcome and connection; connections beyond the first thousand are called other',
    labelNames: ['outcome', 'connection'],
    registers,
  })
  const connections = new Set<string>()
  return (outcome: CallOutcome, namespace: string, connectionId: string) => {
    const connection = `${namespace}/${connectionId}`
    if (connections.size < callConnectionsMax) connections.add(connection)
    calls.inc({ outcome, connection: connections.has(connection) ? connection : 'other' })
  }
}
