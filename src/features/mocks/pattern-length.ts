/** How much the faker has to do for a text that fits a pattern, before it makes one. */

/** Repetitions that the faker makes beyond the least, where there may be any number. */
const moreRepetitions = 5
/** All but classes, whose end the faker finds by itself. */
const token = /\\.|\((?:\?(?:[:=!]|<[^>]{0,100}>))?|\{(\d+)(?:,(\d*))?\}|./suy

/** Characters of ranges in classes that take as long as one that it reads: it lists them all. */
const rangeCharsPerChar = 50
/** Characters that it looks at to find one outside of a class. */
const printableChars = 90

/** Characters that it reads and writes for a text: the pattern, and a class for each character outside of it. */
export function madeCharsOf(pattern: string): number {
  // It may take for a range what is none in the pattern, but no range for anything else.
  const ranges = [...pattern.matchAll(/(?=(.)-(.))/gs)]
  const widths = ranges.map(([, from = '', to = '']) => Math.max(0, to.charCodeAt(0) - from.charCodeAt(0)))
  const listed = widths.reduce((sum, width) => sum + width, 0)
  const hasOutside = /\[\^|\\[DWS]/.test(pattern)
  const charsPerMade = 1 + (hasOutside ? (listed + pattern.length + printableChars) / rangeCharsPerChar : 0)
  return pattern.length + longestMadeOf(pattern) * charsPerMade + listed / rangeCharsPerChar
}

/** Characters of the longest text. Lookarounds, which make none, count too. */
export function longestMadeOf(pattern: string): number {
  /** Of the open groups: the branch so far, and the longest branch before it. */
  const groups = [{ branch: 0, longest: 0 }]
  let last = 0
  for (let at = 0; at < pattern.length; ) {
    token.lastIndex = at
    const [part = '', least = '', most = ''] = token.exec(pattern) ?? []
    at = part === '[' ? classEnd(pattern, at) : at + part.length
    const group = groups.at(-1) as (typeof groups)[number]
    if (part.startsWith('(')) {
      groups.push({ branch: 0, longest: 0 })
      last = 0
    } else if (part === ')' && groups.length > 1) {
      last = Math.max(group.branch, group.longest)
      groups.pop()
      ;(groups.at(-1) as typeof group).branch += last
    } else if (part === '|') {
      group.longest = Math.max(group.branch, group.longest)
      group.branch = 0
      last = 0
    } else if (part === '^' || part === '$') last = 0
    else {
      const times = timesOf(part, least, most)
      const isRepeating = times !== undefined && last > 0
      // One that repeats nothing, as after an anchor or another one, is text for the faker.
      group.branch += isRepeating ? last * (times - 1) : times === undefined ? 1 : part.length
      last = isRepeating ? 0 : 1
      if (isRepeating && (pattern[at] === '?' || pattern[at] === '+')) at += 1
    }
  }
  // A group that nobody closed counts as the rest of the one around it.
  return groups.reduce((sum, { branch, longest }) => sum + Math.max(branch, longest), 0)
}

/** How often a quantifier repeats what stands before it, at most; undefined for anything else. */
function timesOf(part: string, least: string, most: string): number | undefined {
  if (part === '*' || part === '+') return moreRepetitions
  if (part === '?') return 1
  if (!part.startsWith('{') || least === '') return undefined
  const more = Number(least) + moreRepetitions
  return part.includes(',') ? Math.min(most === '' ? more : Number(most), more) : Number(least)
}

/** The place after a class, as the faker finds it: a range may end with a backslash, which escapes nothing there. */
function classEnd(pattern: string, start: number): number {
  let at = start + 1
  while (at < pattern.length && pattern[at] !== ']') {
    const isRange =
      pattern[at] !== '\\' && pattern[at + 1] === '-' && at + 2 < pattern.length && pattern[at + 2] !== ']'
    at += pattern[at] === '\\' ? 2 : isRange ? 3 : 1
  }
  return at + 1
}
