/**
 * Which document has which word how often, in which field; documents come and go one at a time. Documents have small
 * numbers, which are used again, so that scores of a search fit in an array.
 */

import { searchBeginningCharsMin } from '../limits.ts'

/** The documents that have a word, by number, ascending, with packed counts (`countIn`). */
export interface Occurrences {
  readonly documents: readonly number[]
  readonly counts: readonly number[]
  /** How many of the documents are public. */
  readonly publicCount: number
}

/** A byte for each field. */
const bitsPerCount = 8
const greatestCount = 2 ** bitsPerCount - 1

/** How often a word occurs in a field, of a packed count. */
export function countIn(packed: number, field: number): number {
  return (packed >>> (field * bitsPerCount)) & greatestCount
}

interface Document {
  readonly number: number
  readonly words: readonly string[]
  readonly isPublic: boolean
}

/**
 * A caller that searches does not see every document. How rare a word is, and how long a field usually is, are
 * therefore counted of public documents alone: otherwise scores would tell what is in the others.
 */
export function createPostings(fieldCount: number) {
  const documents = new Map<string, Document>()
  const ids: (string | undefined)[] = []
  const lengths: number[] = []
  const free: number[] = []
  const totals = Array.from({ length: fieldCount }, () => 0)
  const occurrences = new Map<string, { word: string; documents: number[]; counts: number[]; publicCount: number }>()
  const byBeginning = new Map<string, Set<string>>()
  let publicCount = 0

  /** Returns the word as one string for all documents. */
  function note(given: string, { number, isPublic }: Omit<Document, 'words'>, count: number): string {
    let found = occurrences.get(given)
    if (found === undefined) {
      // A copy: the word would keep the whole text that it was cut from.
      const word = Buffer.from(given).toString()
      found = { word, documents: [], counts: [], publicCount: 0 }
      occurrences.set(word, found)
      const same = byBeginning.get(beginningOf(word)) ?? new Set()
      byBeginning.set(beginningOf(word), same.add(word))
    }
    const at = placeOf(found.documents, number)
    found.documents.splice(at, 0, number)
    found.counts.splice(at, 0, count)
    if (isPublic) found.publicCount += 1
    return found.word
  }

  function forget(word: string, { number, isPublic }: Document): void {
    const found = occurrences.get(word)
    if (found === undefined) return
    const at = placeOf(found.documents, number)
    found.documents.splice(at, 1)
    found.counts.splice(at, 1)
    if (isPublic) found.publicCount -= 1
    if (found.documents.length > 0) return
    occurrences.delete(word)
    const same = byBeginning.get(beginningOf(word))
    same?.delete(word)
    if (same?.size === 0) byBeginning.delete(beginningOf(word))
  }

  return {
    /** How many documents are public. */
    get publicCount() {
      return publicCount
    },
    /** Greater than every number in use. */
    get end() {
      return ids.length
    },
    /** `fields`: the words of each field, at most four. `id` must be new. */
    add(id: string, fields: readonly (readonly string[])[], isPublic = true): void {
      const number = free.pop() ?? ids.length
      const counts = new Map<string, number>()
      for (const [field, words] of fields.entries()) {
        if (isPublic) totals[field] = (totals[field] as number) + words.length
        lengths[number * fieldCount + field] = words.length
        for (const word of words) {
          const packed = counts.get(word) ?? 0
          if (countIn(packed, field) < greatestCount) counts.set(word, packed + 2 ** (field * bitsPerCount))
        }
      }
      ids[number] = id
      const words = [...counts].map(([word, count]) => note(word, { number, isPublic }, count))
      documents.set(id, { number, words, isPublic })
      if (isPublic) publicCount += 1
    },
    remove(id: string): void {
      const document = documents.get(id)
      if (document === undefined) return
      const { number, words, isPublic } = document
      for (const word of words) forget(word, document)
      if (isPublic) {
        publicCount -= 1
        for (const field of totals.keys())
          totals[field] = (totals[field] as number) - (lengths[number * fieldCount + field] as number)
      }
      documents.delete(id)
      ids[number] = undefined
      free.push(number)
    },
    idOf: (number: number) => ids[number],
    of: (word: string): Occurrences | undefined => occurrences.get(word),
    /** The words with the same first `searchBeginningCharsMin` letters; this one must have as many. */
    likeBeginning: (word: string): Iterable<string> => byBeginning.get(beginningOf(word)) ?? [],
    /** The number of words in a field of a document. */
    lengthOf: (number: number, field: number) => lengths[number * fieldCount + field] as number,
    /** Of public documents; 1 where they have no words in the field. */
    averageLength: (field: number) => (totals[field] as number) / publicCount || 1,
  }
}

export type Postings = ReturnType<typeof createPostings>

/** The letters by which words are grouped, to find those that begin alike. */
function beginningOf(word: string): string {
  return word.slice(0, searchBeginningCharsMin)
}

/** Where a number is, or would be, among ascending ones. */
export function placeOf(numbers: readonly number[], wanted: number): number {
  let [from, to] = [0, numbers.length]
  while (from < to) {
    const middle = (from + to) >>> 1
    if ((numbers[middle] as number) < wanted) from = middle + 1
    else to = middle
  }
  return from
}
