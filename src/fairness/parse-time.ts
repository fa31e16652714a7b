/** The time of parsing a text, as it counts for its owner. */

/** Characters of a response that is parsed without a place of its own: most have fewer. Past it: it waits for one. */
export const unqueuedCharsMax = 64 * 1024
/**
 * Milliseconds for a response that is parsed, and for a megabyte of it, with writing it again and collecting the
 * garbage. Counted against `ownerTimeShare`. Past it: the owner waits.
 */
const parseMs = 0.04
const parseMsPerMegabyte = 10
/** Milliseconds for a response of a few characters, as most are. Up to `smallCharsMax` it grows to `parseMs`. */
const smallParseMs = 0.008
/** Characters of a response that is parsed at once if its owner need not wait. Past it: it takes memory. */
export const smallCharsMax = 4096

export function parseMsOf(characters: number): number {
  const part = Math.min(1, characters / smallCharsMax)
  return smallParseMs + (parseMs - smallParseMs) * part + (characters / 2 ** 20) * parseMsPerMegabyte
}
