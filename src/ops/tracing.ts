/**
 * Traces by OpenTelemetry: a span for each request, one for each MCP message that is forwarded, and one for each
 * request to an upstream, under the trace that the client names (W3C Trace Context; for MCP also in `_meta`). Nothing
 * of it is loaded without `OTEL_EXPORTER_OTLP_ENDPOINT`. Spans wait in a bounded queue and are sent in batches: a
 * collector that hangs or fails costs spans, and nothing else.
 */

import { AsyncLocalStorage } from 'node:async_hooks'
import type { Attributes, Context, Span, SpanKind } from '@opentelemetry/api'
import { version } from '../version.ts'
import { within } from '../within.ts'

/** Milliseconds that a server that stops gives its last spans to be sent. Past it: they are lost. */
const traceFlushMs = 2000

/** Ours: characters of a client's `tracestate`, as many as everybody should pass on (W3C Trace Context, 3.3.1.5). Past it: left out. */
const traceStateCharsMax = 512

/** The facts that a span tells when it ends. `error`: it failed, for this reason. */
interface SpanEnd {
  readonly attributes?: Attributes
  readonly error?: string
}

interface SpanOptions {
  readonly name: string
  readonly kind: keyof typeof SpanKind
  readonly attributes?: Attributes
  /** Headers, or members of `_meta`, that may name a trace. */
  readonly given?: { readonly traceparent?: unknown; readonly tracestate?: unknown }
}

export type Tracing = NonNullable<Awaited<ReturnType<typeof openTracing>>>

/** Undefined unless `OTEL_EXPORTER_OTLP_ENDPOINT` or `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` is set. */
export async function openTracing(environment: NodeJS.ProcessEnv) {
  if (!environment['OTEL_EXPORTER_OTLP_ENDPOINT'] && !environment['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'])
    return undefined
  const { api, provider, propagator } = await loadSdk(environment)
  const tracer = provider.getTracer('postern', version)
  const current = new AsyncLocalStorage<Context>()

  /** The trace that a client names, or else the current span. */
  function parentOf(given: SpanOptions['given']): Context {
    const parent = current.getStore() ?? api.ROOT_CONTEXT
    if (typeof given?.traceparent !== 'string') return parent
    const { traceparent, tracestate } = given
    // Spans are written together, in one piece, and each splits its text.
    const isShort = typeof tracestate === 'string' && tracestate.length <= traceStateCharsMax
    const carrier = { traceparent, ...(isShort && { tracestate }) }
    const extracted = propagator.extract(api.ROOT_CONTEXT, carrier, api.defaultTextMapGetter)
    return api.trace.getSpanContext(extracted) === undefined ? parent : extracted
  }

  function finish(span: Span, { attributes, error }: SpanEnd): void {
    if (attributes !== undefined) span.setAttributes(attributes)
    if (error !== undefined) span.setStatus({ code: api.SpanStatusCode.ERROR, message: error })
    span.end()
  }

  return {
    /**
     * Runs `work` in a span below the current one or `given`. `end`: what the span says of the result. If `work`
     * throws, the span failed.
     */
    async span<T>(
      { name, kind, attributes = {}, given }: SpanOptions,
      work: () => T | Promise<T>,
      end: (result: T) => SpanEnd = () => ({}),
    ): Promise<T> {
      const parent = parentOf(given)
      const span = tracer.startSpan(name, { kind: api.SpanKind[kind], attributes }, parent)
      try {
        const result = await current.run(api.trace.setSpan(parent, span), work)
        finish(span, end(result))
        return result
      } catch (error) {
        finish(span, { error: error instanceof Error ? error.name : 'error' })
        throw error
      }
    },
    /** The headers of W3C Trace Context that carry the current span to another server; none outside of one. */
    headers() {
      const carrier: Record<string, string> = {}
      propagator.inject(current.getStore() ?? api.ROOT_CONTEXT, carrier, api.defaultTextMapSetter)
      return carrier
    },
    /** Sends what waits, for a few seconds at most. */
    close: () => within(traceFlushMs, provider.shutdown(), () => {}).catch(() => {}),
  }
}

/** Loaded where requests are traced: most processes need none of it. */
async function loadSdk(environment: NodeJS.ProcessEnv) {
  const api = await import('@opentelemetry/api')
  const { W3CTraceContextPropagator } = await import('@opentelemetry/core')
  const { resourceFromAttributes } = await import('@opentelemetry/resources')
  const sdk = await import('@opentelemetry/sdk-trace-base')
  const { OTLPTraceExporter } = await import('@opentelemetry/exporter-trace-otlp-http')
  const provider = new sdk.BasicTracerProvider({
    resource: resourceFromAttributes({
      'service.name': environment['OTEL_SERVICE_NAME'] || 'postern',
      'service.version': version,
    }),
    spanProcessors: [new sdk.BatchSpanProcessor(new OTLPTraceExporter())],
  })
  return { api, provider, propagator: new W3CTraceContextPropagator() }
}
