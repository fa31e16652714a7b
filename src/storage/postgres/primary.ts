/**
 * Which of the hosts is the primary, and whether it may be confirmed (contract, 16.9 to 16.11). All hosts are looked at
 * every second. A primary is confirmed while it acknowledges commits of ours: one that was superseded and lost its
 * standbys cannot, and so is left within seconds. Nobody is answered from memory meanwhile.
 */

import type { Clock } from '../../clock.ts'
import { storeBeliefMs, storeLookAgainMs } from '../../limits.ts'
import { within } from '../../within.ts'
import { type Health, StoreError } from '../store.ts'
import type { Client } from './database-client.ts'

/** Contract 16.9: milliseconds between two looks at the hosts of a database; a host must also answer a look within this time. Past it: the host counts as away. */
const storeLookMs = 1000

/** The result of a look at a host. `timeline`: of its WAL; null for a standby, and where nothing may be written. */
export interface Look {
  readonly timeline: number | null
  /** The system identifier of its cluster. */
  readonly system: string
  /** When it was started: two names of one server have the same. */
  readonly started: string
}

/** The facts that are remembered of earlier looks. */
export interface Known {
  readonly system: string | undefined
  /** The highest timeline that was seen. */
  readonly timeline: number
}

/**
 * The place of the primary among `looks`; undefined in it: this host did not answer. A text says why there is none.
 * Of several the one of the highest timeline is it: the others were superseded. Two of one timeline can only be a fault
 * of whoever promoted them, and writing to either would lose what is written to the other.
 */
export function choosePrimary(looks: readonly (Look | undefined)[], { system, timeline }: Known): number | string {
  const answered = looks.filter((look) => look !== undefined)
  if (answered.length === 0) return 'no host of the database answers'
  const ours = answered.filter((look) => system === undefined || look.system === system)
  if (ours.length === 0) return 'this is not the database that postern started with'
  const latest = ours.filter((look) => look.timeline !== null && look.timeline >= timeline)
  const highest = Math.max(...latest.map((look) => look.timeline ?? 0))
  const candidates = latest.filter((look) => look.timeline === highest)
  const [primary] = candidates
  if (primary === undefined) {
    const older = ours.find((look) => look.timeline !== null)
    if (older === undefined) return 'no host of the database is its primary'
    return `the database went back from timeline ${timeline} to ${older.timeline}, so writes may be lost: check which server is right, then restart postern`
  }
  if (candidates.some(({ started, system: other }) => started !== primary.started || other !== primary.system)) {
    return 'two hosts of the database both say that they are the primary: stop the wrong one'
  }
  return looks.indexOf(primary)
}

/** A host, with the connections that watch it and those that work on it. */
export interface WatchedHost {
  readonly name: string
  /** Throws if it does not answer by `until`. */
  look(until: number): Promise<Look>
  /** Commits a sign of life on it. Throws if it is not acknowledged by `until`. */
  beat(until: number): Promise<void>
  open(): Client
}

export type PrimaryWatch = ReturnType<typeof watchPrimary>

/** Where the engine says what happens to it. */
export interface StoreLog {
  info(event: string, fields?: Readonly<Record<string, unknown>>): void
  warn(event: string, fields?: Readonly<Record<string, unknown>>): void
}

/** `every`: repeats an action, and returns what ends that. */
export function watchPrimary(
  hosts: readonly WatchedHost[],
  clock: Clock,
  every: (milliseconds: number, act: () => void) => () => void,
  log: StoreLog,
) {
  let known: Known = { system: undefined, timeline: 0 }
  let primary: { readonly host: WatchedHost; readonly client: Client; readonly timeline: number } | undefined
  /** When the last commit that was acknowledged was sent. */
  let acknowledgedAt = Number.NEGATIVE_INFINITY
  let why = 'the database was not asked yet'
  let wasConfirmed = false
  let isClosed = false
  let lookedAt = Number.NEGATIVE_INFINITY
  /** Resolved at the next change, for all who wait. */
  let change = Promise.withResolvers<true>()

  function wakeAll(): void {
    change.resolve(true)
    change = Promise.withResolvers()
  }

  function changed(): void {
    wakeAll()
    const isConfirmed = isConfirmedNow()
    if (isConfirmed !== wasConfirmed) {
      wasConfirmed = isConfirmed
      if (isConfirmed) log.info('database connected', { primary: primary?.host.name, timeline: primary?.timeline })
      else log.warn('the store is unavailable', { reason: why })
    }
  }

  const isConfirmedNow = () => primary !== undefined && clock.monotonic() - acknowledgedAt < storeBeliefMs

  function leave(): void {
    primary?.client.close()
    primary = undefined
    acknowledgedAt = Number.NEGATIVE_INFINITY
  }

  async function look(): Promise<void> {
    const until = clock.monotonic() + storeLookMs
    const found = await Promise.all(hosts.map((host) => host.look(until).catch(() => undefined)))
    if (isClosed) return
    const chosen = choosePrimary(found, known)
    if (typeof chosen === 'string') {
      why = chosen
      const at = primary === undefined ? -1 : hosts.indexOf(primary.host)
      // Of one that only does not answer, its next acknowledgement decides.
      if (found[at] !== undefined) leave()
      return
    }
    const { system, timeline } = found[chosen] as Look
    known = { system, timeline: timeline ?? 0 }
    const host = hosts[chosen] as WatchedHost
    // After a promotion of the same host, what was open before belongs to its past.
    if (primary?.host === host && primary.timeline === timeline) return
    leave()
    primary = { host, client: host.open(), timeline: timeline ?? 0 }
  }

  async function beat(): Promise<void> {
    const at = primary
    if (at === undefined) return
    const sentAt = clock.monotonic()
    try {
      await at.host.beat(sentAt + storeBeliefMs)
      if (primary === at) acknowledgedAt = Math.max(acknowledgedAt, sentAt)
    } catch (error) {
      if (primary === at) why = (error as Error).message
    }
  }

  /** At once, or a moment after the last look: many callers may have lost a connection, and more than once. */
  async function lookInTurn(): Promise<void> {
    const pause = lookedAt + storeLookAgainMs - clock.monotonic()
    if (pause > 0) await new Promise((resolve) => setTimeout(resolve, pause))
    lookedAt = clock.monotonic()
    await look()
  }

  const sendHeartbeat = sharedRun(() => beat().finally(changed))
  const lookOnce = sharedRun(async () => {
    await lookInTurn().finally(changed)
    if (!isClosed && acknowledgedAt === Number.NEGATIVE_INFINITY) void sendHeartbeat()
  })

  const stop = every(storeLookMs, () => {
    void lookOnce()
    void sendHeartbeat()
  })
  void lookOnce()

  const nextChange = async (until: number) => {
    const left = until - clock.monotonic()
    if (isClosed || left <= 0 || !(await within<boolean>(left, change.promise, () => false)))
      throw new StoreError('unavailable', `the store is unavailable: ${why}`)
  }

  return {
    /** The primary, once it is confirmed. Throws StoreError `unavailable` with the reason if it is not by `until`. */
    async current(until: number): Promise<Client> {
      for (;;) {
        if (primary !== undefined && isConfirmedNow()) return primary.client
        await nextChange(until)
      }
    },
    /** The primary that is confirmed now, with its timeline; undefined if there is none. */
    confirmed(): Health['primary'] {
      if (primary === undefined || !isConfirmedNow()) return undefined
      return { name: primary.host.name, timeline: primary.timeline }
    },
    /** Looks at all hosts soon, because a connection was lost. Resolves when that is done. */
    lookAgain: lookOnce,
    /** Resolves when a commit that was sent after this call was acknowledged. Throws StoreError `unavailable`. */
    async acknowledged(until: number): Promise<void> {
      const since = clock.monotonic()
      while (acknowledgedAt < since) {
        void sendHeartbeat()
        await nextChange(until)
      }
    },
    close(): void {
      isClosed = true
      stop()
      leave()
      wakeAll()
    },
  }
}

/** A call during a run waits for the end of that run. */
function sharedRun(act: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined
  return () => {
    running ??= act().finally(() => {
      running = undefined
    })
    return running
  }
}
