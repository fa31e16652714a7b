/**
 * Notices texts that were made to have one hash. The runtime keeps names, and short texts of JSON, in tables by a hash
 * with fixed secrets (rapidhash). Anybody can compute thousands that fall into one place of such a table, and then
 * parsing takes the square of their number: 18,000 names, 200 kB, held everything for 1.5 s.
 */

/** Ours: different texts of a JSON document that may have one place of a hash table with 4,096 places; eight times the average number of texts in a place is allowed in addition. An attacker who makes names with one hash puts thousands into one place. Past it: the document counts as invalid JSON. */
export const textsPerHashMax = 8

/** As the runtime computes it: of bytes where each character has one, else of both bytes of each. */
function hashOf(text: string): bigint {
  if (/^[\x00-\x7f]*$/.test(text)) return Bun.hash.rapidhash(text)
  return Bun.hash.rapidhash(Buffer.from(text, /^[\x00-\xff]*$/.test(text) ? 'latin1' : 'utf16le'))
}

/** Places of the smallest table that is large enough to tell. */
const places = 4096

export class TextHashes {
  /** The texts so far, by 53 bits of their hashes. */
  readonly #seen = new Set<number>()
  readonly #counts = new Uint32Array(places)

  /** Adds a text. False if more of the different ones so far have its place than chance brings. */
  add(text: string): boolean {
    const hash = Number(BigInt.asUintN(53, hashOf(text)))
    if (this.#seen.has(hash)) return true
    this.#seen.add(hash)
    const place = hash % places
    const count = (this.#counts[place] ?? 0) + 1
    this.#counts[place] = count
    return count <= textsPerHashMax + (8 * this.#seen.size) / places
  }
}
