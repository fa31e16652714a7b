/** Chance that can be repeated: the same seed gives the same numbers (mulberry32). */

export interface Random {
  /** From 0 up to, and without, `below`. */
  int(below: number): number
  pick<T>(items: readonly T[]): T
  chance(share: number): boolean
}

export function random(seed: number): Random {
  let state = seed >>> 0
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = Math.imul(state ^ (state >>> 15), state | 1)
    t = (t + Math.imul(t ^ (t >>> 7), t | 61)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
  return {
    int: (below) => Math.floor(next() * below),
    pick: (items) => items[Math.floor(next() * items.length)] as (typeof items)[number],
    chance: (share) => next() < share,
  }
}
