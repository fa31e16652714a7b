/** Suggestions for a name that does not exist. */

/** Names compared to suggest a correction. Past it: no suggestion. */
export const nearNameCandidatesMax = 10_000
/** Characters of a name that is compared; longer ones are easily told apart. Past it: no suggestion. */
export const nearNameCharsMax = 64

/** The nearest candidate, ignoring case; undefined if none is near enough. */
export function nearName(name: string, candidates: Iterable<string>): string | undefined {
  if (name.length > nearNameCharsMax) return undefined
  const folded = name.toLowerCase()
  let best: string | undefined
  // At most a third of the letters may differ, and at most two.
  let bestDistance = Math.min(2, Math.floor(name.length / 3)) + 1
  for (const candidate of Iterator.from(candidates).take(nearNameCandidatesMax)) {
    if (candidate === name || Math.abs(candidate.length - name.length) >= bestDistance) continue
    const distance = editDistance(folded, candidate.toLowerCase())
    if (distance === 0) return candidate
    if (distance >= bestDistance) continue
    best = candidate
    bestDistance = distance
  }
  return best
}

/** `; did you mean "northwind"?`, or ''. */
export function didYouMean(name: string, candidates: Iterable<string>): string {
  const near = nearName(name, candidates)
  return near === undefined ? '' : `; did you mean ${JSON.stringify(near)}?`
}

/** Edit distance: letters to replace, delete, insert, or swap with a neighbour (optimal string alignment). */
function editDistance(a: string, b: string): number {
  let before: number[] = []
  let above = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i]
    for (let j = 1; j <= b.length; j += 1) {
      const isSame = a[i - 1] === b[j - 1]
      let least = Math.min((above[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (above[j - 1] ?? 0) + (isSame ? 0 : 1))
      if (a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) least = Math.min(least, (before[j - 2] ?? 0) + 1)
      row.push(least)
    }
    before = above
    above = row
  }
  return above[b.length] ?? 0
}
