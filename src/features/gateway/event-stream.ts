/** Streams of events that the platform writes by itself. */

import type { RequestContext } from '../../auth/authorizer.ts'
import type { SharedParts } from '../../auth/shared-parts.ts'
import { rateLimited } from '../../errors.ts'
import { allowanceOf } from '../../fairness/allowance.ts'
import type { Fairness } from '../../fairness/fairness.ts'
import { eventStream } from '../../http/respond.ts'
import { openStreamBytes } from './client-response.ts'

/** All that an open stream takes of its caller, until it is disposed of. Throws 429. */
export function holdStream(
  { fairness: { memory }, sockets }: Pick<SharedParts, 'sockets'> & { readonly fairness: Pick<Fairness, 'memory'> },
  { caller, request }: RequestContext,
): DisposableStack {
  if (!memory.take(caller, openStreamBytes)) throw rateLimited('This caller has too many streams open: close some', 1)
  const held = new DisposableStack()
  held.defer(() => memory.giveBack(caller, openStreamBytes))
  held.defer(sockets.disableIdleTimeout(request))
  held.defer(allowanceOf(request).hold())
  return held
}

/** The events for one client, which takes them when it likes. */
export class EventStream {
  readonly #body: ReadableStream<Uint8Array>
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined
  #held: DisposableStack | undefined

  /** `onTaken`: called when the client has taken something. */
  constructor(unreadBytesMax: number, onTaken = () => {}) {
    this.#body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller
        },
        pull: onTaken,
        cancel: () => {
          this.#controller = undefined
          this.close()
        },
      },
      { highWaterMark: unreadBytesMax, size: (chunk) => chunk?.length ?? 0 },
    )
  }

  /** The response, at whose end `held` is disposed of. */
  response(held: DisposableStack): Response {
    this.#held = held
    // It may have been closed meanwhile.
    if (!this.isOpen) held.dispose()
    return new Response(this.#body, { headers: eventStream })
  }

  get isOpen(): boolean {
    return this.#controller !== undefined
  }

  /** Whether `unreadBytesMax` bytes or more wait for the client to take them. */
  get isFull(): boolean {
    return this.isOpen && (this.#controller?.desiredSize ?? 0) <= 0
  }

  write(bytes: Uint8Array | string): void {
    this.#controller?.enqueue(typeof bytes === 'string' ? Buffer.from(bytes) : bytes)
  }

  close(): void {
    const controller = this.#controller
    this.#controller = undefined
    this.#held?.dispose()
    controller?.close()
  }
}
