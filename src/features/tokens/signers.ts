/**
 * Worker threads that sign tokens, so that minting uses other cores and does not block the event loop. Their priority
 * is that of every thread: it could be lowered, but without a privilege never raised again. Pending signatures are
 * divided fairly among callers.
 */

import { availableParallelism } from 'node:os'
import type { SigningKey } from '../../auth/signing-keys.ts'
import { workerProgram } from '../../compiled.ts'
import { PlatformError } from '../../errors.ts'
import type { Holder } from '../../fairness/owner.ts'
import { Rounds } from '../../fairness/rounds.ts'
import { Shares } from '../../fairness/shares.ts'
import { pendingSignaturesMax } from '../../limits.ts'

/** Signing threads; fewer where there are fewer cores. Each signs 700 tokens a second. Past it: tokens wait. */
const signersMax = 4

export interface SigningRequest {
  /** Repeated in the worker's reply. */
  readonly id: number
  /** The signing input: header and payload of the token. */
  readonly text: string
  /** The seed and then the public key, as tweetnacl has it. */
  readonly secretKey: Uint8Array
}

export interface SigningReply {
  readonly id: number
  readonly signature: string
}

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
  readonly jobs: Map<number, Job>
}

export class Signers {
  readonly #count: number
  /** Started when tokens are minted; most processes need none. */
  readonly #threads = new Set<Thread>()
  readonly #shares = new Shares(pendingSignaturesMax)
  /** One of each owner in turn: however many tokens one mints, another waits for a few. */
  readonly #waiting = new Rounds<Job>()
  #lastId = 0

  /** By default one core is left for the event loop. */
  constructor(count = Math.min(signersMax, Math.max(1, availableParallelism() - 1))) {
    this.#count = count
  }

  /**
   * The signature of the text, in base64url. Rejects with `unavailable` if the holder has too many pending signatures,
   * and with Error if the worker fails.
   */
  async sign(text: string, { secretKey }: SigningKey, holder: Holder): Promise<string> {
    if (!this.#shares.take(holder, 1)) throw tooManyMints()
    try {
      const { promise, resolve, reject } = Promise.withResolvers<string>()
      if (!this.#waiting.add(holder, { text, secretKey, resolve, reject })) throw tooManyMints()
      this.#dispatch()
      return await promise
    } finally {
      this.#shares.giveBack(holder, 1)
    }
  }

  /** Stops all workers. Pending signatures never resolve. */
  close(): void {
    for (const { worker } of this.#threads) worker.terminate()
    this.#threads.clear()
  }

  #start(): Thread {
    const jobs = new Map<number, Job>()
    const worker = new Worker(workerProgram('features/tokens/signing-worker.ts'), { ref: false })
    const thread: Thread = { worker, jobs }
    worker.onmessage = ({ data: { id, signature } }: MessageEvent<SigningReply>) => {
      jobs.get(id)?.resolve(signature)
      jobs.delete(id)
      this.#dispatch()
    }
    // A failed worker is not reused; a later token starts another one.
    worker.onerror = ({ message }) => {
      this.#threads.delete(thread)
      for (const { reject } of jobs.values()) reject(new Error(`the thread that signs ended: ${message}`))
      worker.terminate()
      this.#dispatch()
    }
    this.#threads.add(thread)
    return thread
  }

  #dispatch(): void {
    while (!this.#waiting.isEmpty) {
      const first = [...this.#threads].sort((a, b) => a.jobs.size - b.jobs.size)[0]
      const isBusy = first === undefined || (first.jobs.size > 0 && this.#threads.size < this.#count)
      const { jobs, worker } = isBusy ? this.#start() : first
      const job = jobs.size < jobsPerThread ? this.#waiting.next()?.job : undefined
      if (job === undefined) return
      this.#lastId += 1
      jobs.set(this.#lastId, job)
      worker.postMessage({ id: this.#lastId, text: job.text, secretKey: job.secretKey } satisfies SigningRequest)
    }
  }
}

function tooManyMints(): PlatformError {
  return new PlatformError('unavailable', 'Too many tokens are being minted: try again', { retryAfter: 1 })
}
