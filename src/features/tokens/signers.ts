/**
 * Worker threads that sign tokens, so that minting uses other cores and does not block the event loop. Their priority
 * is that of every thread: it could be lowered, but without a privilege never raised again. Pending signatures are
 * limited to `pendingSignaturesMax` and divided fairly among callers, so a burst of one caller leaves room for the
 * others.
 */

import { availableParallelism } from 'node:os'
import type { SigningKey } from '../../auth/signing-keys.ts'
import { isCompiled } from '../../compiled.ts'
import { PlatformError } from '../../errors.ts'
import type { Holder } from '../../fairness/owner.ts'
import { Rounds } from '../../fairness/rounds.ts'
import { Shares } from '../../fairness/shares.ts'
import { pendingSignaturesMax } from '../../limits.ts'

/**
 * Signing threads, one fewer than there are cores and at most this many; each signs 700 tokens a second. Past it:
 * tokens wait.
 */
const signersMax = 4

/** Sent to a worker. */
export interface SigningRequest {
  /** Repeated in the worker's reply. */
  readonly id: number
  /** The signing input: header and payload of the token. */
  readonly text: string
  /** The seed and then the public key, as tweetnacl has it. */
  readonly secretKey: Uint8Array
}

/** Sent by a worker. */
export interface SigningReply {
  readonly id: number
  readonly signature: string
}

/** The threads, as far as they have been started. */
export type Signers = ReturnType<typeof createSigners>

interface Job {
  readonly text: string
  readonly secretKey: SigningKey['secretKey']
  readonly resolve: (signature: string) => void
  readonly reject: (error: Error) => void
}

/** Signatures that a thread has at once: the next one is there when it has made one. The others wait in rounds. */
const jobsPerThread = 2

interface Thread {
  readonly worker: Worker
  /** By request id. */
  readonly jobs: Map<number, Job>
}

/** By default one core is left for the event loop. Threads start when tokens are minted; most processes need none. */
export function createSigners(count = Math.min(signersMax, Math.max(1, availableParallelism() - 1))) {
  const threads = new Set<Thread>()
  const shares = new Shares(pendingSignaturesMax)
  /** One of each owner in turn: however many tokens one mints, another waits for a few. */
  const waiting = new Rounds<Job>()
  let lastId = 0

  function start(): Thread {
    const jobs = new Map<number, Job>()
    const worker = new Worker(program(), { ref: false })
    const thread: Thread = { worker, jobs }
    worker.onmessage = ({ data: { id, signature } }: MessageEvent<SigningReply>) => {
      jobs.get(id)?.resolve(signature)
      jobs.delete(id)
      dispatch()
    }
    // A failed worker is not reused; a later token starts another one.
    worker.onerror = ({ message }) => {
      threads.delete(thread)
      for (const { reject } of jobs.values()) reject(new Error(`the thread that signs ended: ${message}`))
      worker.terminate()
      dispatch()
    }
    threads.add(thread)
    return thread
  }

  /** Gives the threads work, as far as they have room. */
  function dispatch(): void {
    while (!waiting.isEmpty) {
      const first = [...threads].sort((a, b) => a.jobs.size - b.jobs.size)[0]
      const isBusy = first === undefined || (first.jobs.size > 0 && threads.size < count)
      const { jobs, worker } = isBusy ? start() : first
      const job = jobs.size < jobsPerThread ? waiting.next()?.job : undefined
      if (job === undefined) return
      lastId += 1
      jobs.set(lastId, job)
      worker.postMessage({ id: lastId, text: job.text, secretKey: job.secretKey } satisfies SigningRequest)
    }
  }

  return {
    /**
     * The signature of the text, in base64url. Rejects with `unavailable` if the holder has too many pending
     * signatures, and with Error if the worker fails.
     */
    async sign(text: string, { secretKey }: SigningKey, holder: Holder): Promise<string> {
      if (!shares.take(holder, 1)) throw tooManyMints()
      try {
        const { promise, resolve, reject } = Promise.withResolvers<string>()
        if (!waiting.add(holder, { text, secretKey, resolve, reject })) throw tooManyMints()
        dispatch()
        return await promise
      } finally {
        shares.giveBack(holder, 1)
      }
    },
    /** Stops all workers. Pending signatures never resolve. */
    close(): void {
      for (const { worker } of threads) worker.terminate()
      threads.clear()
    },
  }
}

function tooManyMints(): PlatformError {
  return new PlatformError('unavailable', 'Too many tokens are being minted: try again', { retryAfter: 1 })
}

/** The worker's program: bundled in the executable under its path below `src`, or the source file. */
function program(): string {
  return isCompiled ? './features/tokens/signing-worker.ts' : new URL('./signing-worker.ts', import.meta.url).href
}
