/**
 * Which document has which word how often, in which field; documents come and go one at a time. Documents have small
 * numbers, which are used again, so that scores of a search fit in an array.
 */

import { searchBeginningCharsMin } from '../limits.ts'

/**
 * A document that has a word, and how often: the document's number, above 32 bits with a byte for each field. One number
 * and no object, because an owner may have a hundred thousand words, which every collection of garbage would look at.
 */
type Entry = number

/** The documents that have a word. */
export interface Occurrences {
  /** Ascending. */
  readonly entries: readonly Entry[]
  /** How many of the documents are public. */
  readonly publicCount: number
}

const documentUnit = 2 ** 32
const bitsPerCount = 8
const greatestCount = 2 ** bitsPerCount - 1

/** The number of the document. */
export function documentOf(entry: Entry): number {
  return Math.floor(entry / documentUnit)
}

/** How often the word occurs in a field. */
export function countIn(entry: Entry, field: number): number {
  return (entry >>> (field * bitsPerCount)) & greatestCount
}

interface Document {
  readonly number: number
  /** The numbers of its words. */
  readonly words: Uint32Array
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
  const words = new Words()
  let publicCount = 0

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
      for (const [field, given] of fields.entries()) {
        if (isPublic) totals[field] = (totals[field] as number) + given.length
        lengths[number * fieldCount + field] = given.length
        for (const word of given) {
          const packed = counts.get(word) ?? 0
          if (countIn(packed, field) < greatestCount) counts.set(word, packed + 2 ** (field * bitsPerCount))
        }
      }
      ids[number] = id
      const noted = Uint32Array.from(counts, ([word, count]) =>
        words.note(word, number * documentUnit + count, isPublic),
      )
      documents.set(id, { number, words: noted, isPublic })
      if (isPublic) publicCount += 1
    },
    remove(id: string): void {
      const document = documents.get(id)
      if (document === undefined) return
      const { number, isPublic } = document
      for (const word of document.words) words.forget(word, document)
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
    of: (text: string) => words.of(text),
    likeBeginning: (word: string) => words.likeBeginning(word),
    /** The number of words in a field of a document. */
    lengthOf: (number: number, field: number) => lengths[number * fieldCount + field] as number,
    /** Of public documents; 1 where they have no words in the field. */
    averageLength: (field: number) => (totals[field] as number) / publicCount || 1,
  }
}

export type Postings = ReturnType<typeof createPostings>

/** Words, each with the documents that have it. */
class Words {
  /** Words have small numbers, too, which are used again. */
  readonly #numbers = new Map<string, number>()
  readonly #words: string[] = []
  readonly #freeWords: number[] = []
  /** By the number of a word: its one entry, as most words have, or all. */
  readonly #entries: (Entry | Entry[])[] = []
  readonly #publicCounts: number[] = []
  /** By their first letters: the one word, as most beginnings have, or all. */
  readonly #byBeginning = new Map<string, string | Set<string>>()

  /** Returns the number of the word. */
  note(given: string, entry: Entry, isPublic: boolean): number {
    const known = this.#numbers.get(given)
    const word = known ?? this.#freeWords.pop() ?? this.#words.length
    if (known === undefined) {
      // A copy: the word would keep the whole text that it was cut from.
      const text = Buffer.from(given).toString()
      this.#numbers.set(text, word)
      this.#words[word] = text
      this.#entries[word] = entry
      this.#publicCounts[word] = 0
      const same = this.#byBeginning.get(beginningOf(text))
      if (typeof same === 'object') same.add(text)
      else this.#byBeginning.set(beginningOf(text), same === undefined ? text : new Set([same, text]))
    } else {
      const others = this.#allOf(word)
      this.#entries[word] = others
      others.splice(placeOf(others, documentOf(entry)), 0, entry)
    }
    if (isPublic) this.#publicCounts[word] = (this.#publicCounts[word] as number) + 1
    return word
  }

  forget(word: number, { number, isPublic }: Document): void {
    if (isPublic) this.#publicCounts[word] = (this.#publicCounts[word] as number) - 1
    const all = this.#allOf(word)
    all.splice(placeOf(all, number), 1)
    this.#entries[word] = all
    if (all.length > 0) return
    const text = this.#words[word] as string
    this.#numbers.delete(text)
    this.#freeWords.push(word)
    this.#words[word] = ''
    this.#entries[word] = 0
    const same = this.#byBeginning.get(beginningOf(text))
    if (typeof same === 'object') same.delete(text)
    if (typeof same !== 'object' || same.size === 0) this.#byBeginning.delete(beginningOf(text))
  }

  of(text: string): Occurrences | undefined {
    const word = this.#numbers.get(text)
    if (word === undefined) return undefined
    return { entries: this.#allOf(word), publicCount: this.#publicCounts[word] as number }
  }

  /** The words with the same first `searchBeginningCharsMin` letters; this one must have as many. */
  likeBeginning(word: string): Iterable<string> {
    const found = this.#byBeginning.get(beginningOf(word)) ?? []
    return typeof found === 'string' ? [found] : found
  }

  #allOf(word: number): Entry[] {
    const found = this.#entries[word] as Entry | Entry[]
    return typeof found === 'number' ? [found] : found
  }
}

/** The letters by which words are grouped, to find those that begin alike. */
function beginningOf(word: string): string {
  return word.slice(0, searchBeginningCharsMin)
}

/** Where the entry of a document is, or would be. */
export function placeOf(entries: readonly Entry[], document: number): number {
  let [from, to] = [0, entries.length]
  while (from < to) {
    const middle = (from + to) >>> 1
    if (documentOf(entries[middle] as Entry) < document) from = middle + 1
    else to = middle
  }
  return from
}
