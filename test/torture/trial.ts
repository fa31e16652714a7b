/** What a trial is: a promise of the platform, put to the test as often as it is asked to, by chance that can be repeated. */

export interface Trial {
  /** For `--only`. */
  readonly name: string
  readonly promise: string
  /** How often, in `make torture` and in `make test`. */
  readonly times: { readonly full: number; readonly short: number }
  /** `goOn`: from here on it only waits, and others may run beside it. */
  run(times: number, seed: number, goOn: () => void): Promise<Outcome>
}

export interface Outcome {
  /** What was counted or measured, in a line. */
  readonly figure: string
  /** What broke the promise; empty when it held. The first few are enough. */
  readonly broken: readonly string[]
  /** Why it could not be looked at on this machine. */
  readonly missing?: string
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
