/**
 * Worker threads that sign tokens, so that minting uses idle cores and does not block the event loop. Pending
 * signatures are limited to `pendingSignaturesMax` and divided fairly among callers, so a burst of one caller leaves
 * room for the others.
 */

import { availableParallelism } from 'node:os'
import type { SigningKey } from '../../auth/signing-keys.ts'
import { isCompiled } from '../../compiled.ts'
import { PlatformError } from '../../errors.ts'
import type { Holder } from '../../fairness/owner.ts'
import { createShares } from '../../fairness/shares.ts'
import { pendingSignaturesMax, signaturesBehind, signersMax } from '../../limits.ts'
import { setThreadPriority } from './thread-priority.ts'

/** Sent to a worker. */
export interface SigningRequest {
  /** Repeated in the worker's reply. */
  readonly id: number
  /** The signing input: header and payload of the token. */
  readonly text: string
  /** The seed and then the public key, as tweetnacl has it. */
  readonly secretKey: Uint8Array
}

/** Sent by a worker: first its thread id in the operating system, then signatures. */
export type ThreadMessage =
  | { readonly id: number; readonly signature: string }
  | { readonly thread: number | undefined }

export interface Signers {
  /**
   * The signature of the text, in base64url. Rejects with `unavailable` if the holder has too many pending signatures,
   * and with Error if the worker fails.
   */
  sign(text: string, key: SigningKey, holder: Holder): Promise<string>
  /** Stops all workers. Pending signatures never resolve. */
  close(): void
}

interface Waiting {
  readonly resolve: (signature: string) => void
  readonly reject: (error: Error) => void
}

interface Thread {
  readonly worker: Worker
  /** Its thread id in the operating system. Undefined until reported, and if the system does not provide it. */
  number: number | undefined
  /** True: it runs at normal priority, because its queue is long. False: it runs only when a core would be idle. */
  isBehind: boolean
  /** By request id. */
  readonly waiting: Map<number, Waiting>
}

/** By default one core is left for the event loop. Threads start when tokens are minted; most processes need none. */
export function createSigners(count = Math.min(signersMax, Math.max(1, availableParallelism() - 1))): Signers {
  const threads = new Set<Thread>()
  const shares = createShares(pendingSignaturesMax)
  let lastId = 0

  function start(): Thread {
    const waiting = new Map<number, Waiting>()
    const worker = new Worker(program(), { ref: false })
    const thread: Thread = { worker, number: undefined, isBehind: false, waiting }
    worker.onmessage = ({ data }: MessageEvent<ThreadMessage>) => {
      if ('thread' in data) {
        thread.number = data.thread
        compete(thread, thread.isBehind)
        return
      }
      waiting.get(data.id)?.resolve(data.signature)
      waiting.delete(data.id)
      // The queue is empty: back to idle priority.
      if (thread.isBehind && waiting.size === 0) compete(thread, false)
    }
    // A failed worker is not reused; a later token starts another one.
    worker.onerror = ({ message }) => {
      threads.delete(thread)
      for (const { reject } of waiting.values()) reject(new Error(`the thread that signs ended: ${message}`))
      worker.terminate()
    }
    threads.add(thread)
    return thread
  }

  /** Sets the priority: normal or idle. */
  function compete(thread: Thread, isBehind: boolean): void {
    thread.isBehind = isBehind
    setThreadPriority(thread.number, isBehind ? 'normal' : 'idle')
  }

  /** The thread with the shortest queue; a new one if all are busy and there are fewer than `count`. */
  function least(): Thread {
    const [first] = [...threads].sort((a, b) => a.waiting.size - b.waiting.size)
    return first === undefined || (first.waiting.size > 0 && threads.size < count) ? start() : first
  }

  return {
    async sign(text, { secretKey }, holder) {
      if (!shares.take(holder, 1)) {
        throw new PlatformError('unavailable', 'Too many tokens are being minted: try again', {
          retryAfter: 1,
        })
      }
      try {
        const thread = least()
        lastId += 1
        const { promise, resolve, reject } = Promise.withResolvers<string>()
        thread.waiting.set(lastId, { resolve, reject })
        // If all cores are constantly busy, a thread at idle priority signs only two tokens per second.
        if (!thread.isBehind && thread.waiting.size >= signaturesBehind) compete(thread, true)
        thread.worker.postMessage({ id: lastId, text, secretKey } satisfies SigningRequest)
        return await promise
      } finally {
        shares.giveBack(holder, 1)
      }
    },
    close() {
      for (const { worker } of threads) worker.terminate()
      threads.clear()
    },
  }
}

/** The worker's program: bundled in the executable under its path below `src`, or the source file. */
function program(): string {
  return isCompiled ? './features/tokens/signing-worker.ts' : new URL('./signing-worker.ts', import.meta.url).href
}
