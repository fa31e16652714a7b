/**
 * A few threads that sign tokens, so that minting takes cores that are free and holds up no reader. What waits for them
 * is bounded, and shared by callers: one that mints in bursts leaves room for the others.
 */

import { availableParallelism } from 'node:os'
import type { SigningKey } from '../../auth/signing-keys.ts'
import { isCompiled } from '../../compiled.ts'
import { PlatformError } from '../../errors.ts'
import { createShares, type Holder } from '../../http/shares.ts'
import { pendingSignaturesMax, signaturesBehind, signersMax } from '../../limits.ts'
import { setThreadPriority } from './thread-priority.ts'

export interface SigningRequest {
  readonly id: number
  readonly text: string
  readonly secretKey: Uint8Array
}

/** A signature, or, first of all, the system's number of the thread. */
export type ThreadMessage =
  | { readonly id: number; readonly signature: string }
  | { readonly thread: number | undefined }

export interface Signers {
  /** The signature of the text, encoded. Rejects with `unavailable` where too many wait. */
  sign(text: string, key: SigningKey, holder: Holder): Promise<string>
  close(): void
}

interface Waiting {
  readonly resolve: (signature: string) => void
  readonly reject: (error: Error) => void
}

interface Thread {
  readonly worker: Worker
  /** Undefined until it has said so, and where the system does not tell. */
  number: number | undefined
  /** It competes for the processor. Otherwise it signs only where nobody else has something to do. */
  isBehind: boolean
  readonly waiting: Map<number, Waiting>
}

/** One core is left for requests. Threads are started by the first tokens that are minted: most processes need none. */
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
        setThreadPriority(thread.number, thread.isBehind ? 'normal' : 'idle')
        return
      }
      waiting.get(data.id)?.resolve(data.signature)
      waiting.delete(data.id)
      if (thread.isBehind && waiting.size === 0) compete(thread, false)
    }
    // It is not used again: the next token starts another one.
    worker.onerror = ({ message }) => {
      threads.delete(thread)
      for (const { reject } of waiting.values()) reject(new Error(`the thread that signs ended: ${message}`))
      worker.terminate()
    }
    threads.add(thread)
    return thread
  }

  function compete(thread: Thread, isBehind: boolean): void {
    thread.isBehind = isBehind
    setThreadPriority(thread.number, isBehind ? 'normal' : 'idle')
  }

  /** The one with the least to do, or another one while all have something. */
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
        // Where the processors are busy without end, a thread that gives way to all signs two tokens a second.
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

/** Where the thread's program is: in the executable beside the main one, by its place there. */
function program(): string {
  return isCompiled ? './features/tokens/signing-worker.ts' : new URL('./signing-worker.ts', import.meta.url).href
}
