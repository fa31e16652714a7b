/** What a trial is: a promise of the platform, put to the test as often as it is asked to, by chance that can be repeated. */

import { until } from '../support/until.ts'

export interface Trial {
  /** For `--only`. */
  readonly name: string
  readonly promise: string
  /** How often, in `make torture` and in `make test`. */
  readonly times: { readonly full: number; readonly short: number }
  /** It measures times, so that nothing runs beside it. */
  readonly isTimed?: boolean
  /** `goOn`: from here on others may run beside it, because it only waits. */
  run(times: number, seed: number, goOn: () => void): Promise<Outcome>
}

export interface Outcome {
  /** What was counted or measured, in a line. */
  readonly figure: string
  /** What broke the promise; empty when it held. The first few are enough. */
  readonly broken: readonly string[]
  /** How often each thing happened that the promise is about, and how often it must have: less says nothing. */
  readonly seen: Seen
  /** Why it could not be looked at on this machine. */
  readonly missing?: string
}

export type Seen = Readonly<Record<string, readonly [count: number, least: number]>>

/** What was seen too seldom, a line each: a trial that looked at nothing has not held. */
export function tooSeldom(seen: Seen): string[] {
  return Object.entries(seen).flatMap(([what, [count, least]]) =>
    count >= least ? [] : [`looked at too little: ${what}: ${count}, and at least ${least} are needed`],
  )
}

/** Things that happen while a round lasts, by how often each has. Rounds wait for one of them each, in turn. */
export function inTurn(counts: Readonly<Record<string, () => number>>) {
  const all = Object.entries(counts)
  return {
    /** Resolves when what this round is for has happened since the call. */
    async happens(round: number): Promise<void> {
      const [, count] = all[round % all.length] as [string, () => number]
      const before = count()
      await until(() => count() > before)
    },
    seen: (rounds: number): Seen =>
      Object.fromEntries(
        all.map(([what, count], at) => [what, [count(), Math.max(0, Math.ceil((rounds - at) / all.length))]]),
      ),
  }
}

/** Collects what broke the promise. */
export function collector(): { readonly broken: string[]; expect(holds: boolean, what: () => string): void } {
  const broken: string[] = []
  return {
    broken,
    expect(holds, what) {
      if (!holds && broken.length < 20) broken.push(what())
    },
  }
}
