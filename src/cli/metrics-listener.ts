/** The operator's listener: `/metrics` in the Prometheus text format, and `/ready`. */

import { invalidRequest } from '../errors.ts'
import { asPlatformError, errorResponse } from '../http/error-response.ts'
import { createGuard, type GuardOptions } from '../http/guard.ts'
import { endUnreadChunks } from '../http/respond.ts'
import { nextTurn } from '../next-turn.ts'
import type { PageCache } from '../ops/metrics.ts'
import { requireFreeSpace } from '../storage/free-space.ts'
import type { Store } from '../storage/store.ts'
import { urlOf } from './config.ts'
import { listenError } from './listen-error.ts'

interface Watched {
  readonly store: Store
  readonly dataPath: string
  /** Of what is refused without a line. Each throws while the last line could not be written. */
  readonly logs: readonly ({ requireWritable(): void } | undefined)[]
  readonly pageCache: PageCache
}

/** One text for all that ask in one pass of the event loop: it takes milliseconds, for which everybody waits. */
function oncePerPass(make: () => Promise<string>): () => Promise<string> {
  let next: Promise<string> | undefined
  return () => {
    next ??= nextTurn().then(() => {
      next = undefined
      return make()
    })
    return next
  }
}

/**
 * Starts the listener. Its guard prevents DNS rebinding; names without a dot cannot be registered by an attacker, and
 * are always accepted. `observer` of the result receives the events to count. Throws CommandError if it cannot listen.
 */
export async function serveMetrics(
  { port, ...place }: Pick<GuardOptions, 'host' | 'baseUrl' | 'localAddresses'> & { readonly port: number },
  { store, dataPath, logs, pageCache }: Watched,
) {
  const { host } = place
  const guard = createGuard({ ...place, corsOrigins: [] })
  const { createMetrics } = await import('../ops/metrics.ts')
  const metrics = createMetrics(store, pageCache)
  // Ready: the store works, the logs can be written, and their disk has room.
  const ready = async () => {
    try {
      const { durability, primary } = await store.health()
      requireFreeSpace(dataPath, 0)
      for (const log of logs) log?.requireWritable()
      return Response.json({ status: 'ready', durability, ...(primary && { primary: primary.name }) })
    } catch (error) {
      return Response.json({ status: 'unavailable', message: (error as Error).message }, { status: 503 })
    }
  }
  const text = oncePerPass(() => metrics.text())
  const guarded = (answer: () => Promise<Response> | Response) => async (request: Request) => {
    // The runtime closes a connection on which more was sent ahead while a request waits (`fairness/passes.ts`).
    await nextTurn()
    try {
      if (!/^[a-z0-9-]+(?::\d+)?$/i.test(request.headers.get('host') ?? '')) guard.check(request.headers)
      // Behind a long answer the end of the connection would take a part of it along.
      if (request.headers.has('transfer-encoding'))
        throw invalidRequest('this address takes no body: omit Transfer-Encoding')
      return await answer()
    } catch (thrown) {
      return endUnreadChunks(request, errorResponse(asPlatformError(thrown)))
    }
  }
  try {
    const server = Bun.serve({
      hostname: host,
      port,
      // No shared port: a second server must fail, and not take half of the requests.
      reusePort: false,
      development: false,
      routes: {
        '/metrics': guarded(
          async () => new Response(await text(), { headers: { 'content-type': metrics.contentType } }),
        ),
        '/ready': guarded(ready),
      },
      fetch: guarded(() =>
        Response.json({ error: 'not_found', message: 'This address has /metrics and /ready only' }, { status: 404 }),
      ),
    })
    const listener = { host, port: server.port ?? 0 }
    return { observer: metrics.observer, url: urlOf(host, listener.port), listener, stop: () => void server.stop(true) }
  } catch (error) {
    throw listenError(error, host, port, '--metrics-listen')
  }
}
