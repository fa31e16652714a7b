/** Which document has which word how often, in which field; documents come and go one at a time. */

/** Where a word occurs: counts by field, of each document. */
export type Occurrences = ReadonlyMap<string, Uint8Array>

export interface Postings {
  /** The number of documents. */
  readonly size: number
  /** `fields`: the words of each field. `id` must be new. */
  add(id: string, fields: readonly (readonly string[])[]): void
  remove(id: string): void
  of(word: string): Occurrences | undefined
  /** The words that begin with this one, of `lettersOfGroup` letters at least, and are longer. */
  longer(word: string): string[]
  /** The words in a field of a document, as a share of the average. */
  relativeLength(id: string, field: number): number
}

interface Document {
  /** The number of words in each field. */
  readonly lengths: readonly number[]
  readonly words: readonly string[]
}

/** The letters by which words are grouped, to find those with the same beginning. */
const lettersOfGroup = 3
/** A count takes a byte. */
const greatestCount = 255

export function createPostings(fieldCount: number): Postings {
  const documents = new Map<string, Document>()
  const occurrences = new Map<string, Map<string, Uint8Array>>()
  const byBeginning = new Map<string, Set<string>>()
  const totals = Array.from({ length: fieldCount }, () => 0)

  function forget(word: string, id: string): void {
    const found = occurrences.get(word)
    found?.delete(id)
    if (found?.size !== 0) return
    occurrences.delete(word)
    const same = byBeginning.get(beginningOf(word))
    same?.delete(word)
    if (same?.size === 0) byBeginning.delete(beginningOf(word))
  }

  return {
    get size() {
      return documents.size
    },
    add(id, fields) {
      const counts = new Map<string, Uint8Array>()
      for (const [field, words] of fields.entries()) {
        totals[field] = (totals[field] as number) + words.length
        for (const word of words) {
          const count = counts.get(word) ?? new Uint8Array(fieldCount)
          count[field] = Math.min(greatestCount, (count[field] as number) + 1)
          counts.set(word, count)
        }
      }
      for (const [word, count] of counts) {
        const found = occurrences.get(word) ?? new Map<string, Uint8Array>()
        if (found.size === 0) {
          occurrences.set(word, found)
          const same = byBeginning.get(beginningOf(word)) ?? new Set()
          byBeginning.set(beginningOf(word), same.add(word))
        }
        found.set(id, count)
      }
      documents.set(id, { lengths: fields.map(({ length }) => length), words: [...counts.keys()] })
    },
    remove(id) {
      const document = documents.get(id)
      if (document === undefined) return
      for (const word of document.words) forget(word, id)
      for (const [field, length] of document.lengths.entries()) totals[field] = (totals[field] as number) - length
      documents.delete(id)
    },
    of: (word) => occurrences.get(word),
    longer: (word) =>
      [...(byBeginning.get(beginningOf(word)) ?? [])].filter((other) => other !== word && other.startsWith(word)),
    relativeLength(id, field) {
      const length = documents.get(id)?.lengths[field] ?? 0
      return (length * documents.size) / (totals[field] as number)
    },
  }
}

function beginningOf(word: string): string {
  return word.slice(0, lettersOfGroup)
}
