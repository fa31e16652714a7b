/**
 * A search index in memory. Ranks by BM25 (Robertson and Zaragoza, "The Probabilistic Relevance Framework", 2009),
 * field by field. A search is a generator, so that it can be run in slices (`fairness/turns.ts`).
 */

import { searchBeginningCharsMin } from '../limits.ts'
import { countIn, createPostings, documentOf, type Occurrences, type Postings, placeOf } from './postings.ts'

/** BM25's parameters, as the literature recommends them. */
const saturation = 1.2
const lengthShare = 0.75
/** Words of an average field, for a search that must not know it. */
const blindLength = 10

/** Ranking one document takes about 0.2 µs, with a word to look up 0.4; in the unit of `sliceCost`. */
const costPerDocument = 10
const documentsPerStep = 1000

export interface SearchOptions {
  readonly most: number
  readonly anyWord?: boolean
  /** Ranks without what the index knows of all documents: how rare words are, and how long fields. */
  readonly isBlind?: boolean
  readonly isWanted: (id: string) => boolean
}

export interface Hit {
  readonly id: string
  readonly score: number
}

/** `weights`: of the fields, in order; four at most. */
export function createWordIndex(weights: readonly number[]) {
  const postings = createPostings(weights.length)
  return {
    add: postings.add,
    remove: postings.remove,
    /**
     * The best `most` documents that `isWanted` and that have every word; with `anyWord`, that have any. The last word
     * counts as the beginning of others too, if it has `searchBeginningCharsMin` letters. Best first; equals by id.
     */
    *search(given: readonly string[], { most, anyWord, isBlind, isWanted }: SearchOptions): Generator<number, Hit[]> {
      // The last word stays last where it is repeated.
      const query = [...new Set([...given].reverse())].reverse()
      const last = query.at(-1)
      if (last === undefined) return []
      const ranking = new Ranking(postings, weights, isBlind === true)
      const isLastBeginning = [...last].length >= searchBeginningCharsMin
      const scores = yield* anyWord === true
        ? ranking.withAny(query, isLastBeginning)
        : ranking.withEvery(query, isLastBeginning)
      // Numbers alone: an object for each of ten thousand documents is garbage that holds up others later.
      const found = new Uint32Array(scores.length)
      let count = 0
      for (let number = 0; number < scores.length; number += 1) {
        if (number % documentsPerStep === 0) yield documentsPerStep * costPerDocument
        const id = (scores[number] as number) > 0 ? postings.idOf(number) : undefined
        if (id === undefined || !isWanted(id)) continue
        found[count] = number
        count += 1
      }
      return best(postings, scores, found.subarray(0, count), most)
    },
  }
}

/** By the number of the document; 0 for one that does not match. */
type Scores = Float64Array

/**
 * Scores for one search. A document that changes while the search waits for its turn may be missing, or ranked by its
 * earlier words.
 */
class Ranking {
  readonly #postings: Postings
  readonly #weights: readonly number[]
  readonly #isBlind: boolean
  readonly #averages: readonly number[]

  constructor(postings: Postings, weights: readonly number[], isBlind: boolean) {
    this.#postings = postings
    this.#weights = weights
    this.#isBlind = isBlind
    this.#averages = weights.map((_, field) => (isBlind ? blindLength : postings.averageLength(field)))
  }

  #noScores(): Scores {
    return new Float64Array(this.#postings.end)
  }

  /** How much it says of a document that it has a word. */
  #rarityOf({ publicCount }: Occurrences): number {
    if (this.#isBlind) return 1
    return Math.log(1 + (this.#postings.publicCount - publicCount + 0.5) / (publicCount + 0.5))
  }

  #scoreOf(entry: number): number {
    const postings = this.#postings
    const weights = this.#weights
    const number = documentOf(entry)
    let sum = 0
    for (let field = 0; field < weights.length; field += 1) {
      const count = countIn(entry, field)
      if (count === 0) continue
      const relative = postings.lengthOf(number, field) / (this.#averages[field] as number)
      const length = 1 - lengthShare + lengthShare * relative
      sum += ((weights[field] as number) * count * (saturation + 1)) / (count + saturation * length)
    }
    return sum
  }

  /** All documents that have the word, or one that begins with it. */
  *withOne(word: string, isBeginning: boolean): Generator<number, Scores> {
    const postings = this.#postings
    const scores = this.#noScores()
    const exact = postings.of(word)
    const rarityOfWord = exact === undefined ? Number.POSITIVE_INFINITY : this.#rarityOf(exact)
    let compared = 0
    for (const other of isBeginning ? postings.likeBeginning(word) : [word]) {
      compared += 1
      if (compared % documentsPerStep === 0) yield documentsPerStep * costPerDocument
      const found = other.startsWith(word) ? postings.of(other) : undefined
      if (found === undefined) continue
      // A longer word may be rarer, and must not say more than the word itself.
      const rarity = (Math.min(this.#rarityOf(found), rarityOfWord) * word.length) / other.length
      yield costPerDocument
      for (let at = 0; at < found.entries.length; at += 1) {
        if (at % documentsPerStep === documentsPerStep - 1) yield documentsPerStep * costPerDocument
        const entry = found.entries[at] as number
        const number = documentOf(entry)
        const score = this.#scoreOf(entry) * rarity
        if (score > (scores[number] ?? 0)) scores[number] = score
      }
    }
    return scores
  }

  /**
   * Documents that have all words. The rarest comes first: the others are looked up for what has it. Scores are added
   * in that order, on which only public documents decide: a sum of numbers is not the same in every order.
   */
  *withEvery(query: readonly string[], isLastBeginning: boolean): Generator<number, Scores> {
    const exact = query.slice(0, isLastBeginning ? -1 : undefined).map((word) => this.#postings.of(word))
    if (exact.some((found) => found === undefined)) return this.#noScores()
    const rarest = (exact as Occurrences[]).sort((a, b) => a.publicCount - b.publicCount)
    const ending = isLastBeginning ? yield* this.withOne(query.at(-1) as string, true) : undefined
    const [first] = rarest
    if (first === undefined) return ending ?? this.#noScores()
    const scores = this.#noScores()
    const rarities = rarest.map((found) => this.#rarityOf(found))
    for (let at = 0; at < first.entries.length; at += 1) {
      if (at % documentsPerStep === 0) yield documentsPerStep * costPerDocument * query.length
      const number = documentOf(first.entries[at] as number)
      let sum = ending?.[number] ?? 0
      if (ending !== undefined && sum === 0) continue
      let had = 0
      for (const [index, found] of rarest.entries()) {
        const entry = found.entries[placeOf(found.entries, number)]
        if (entry === undefined || documentOf(entry) !== number) break
        had += 1
        sum += this.#scoreOf(entry) * (rarities[index] as number)
      }
      if (had === rarest.length) scores[number] = sum
    }
    return scores
  }

  *withAny(query: readonly string[], isLastBeginning: boolean): Generator<number, Scores> {
    const scores = this.#noScores()
    for (const [at, word] of query.entries()) {
      const found = yield* this.withOne(word, isLastBeginning && at === query.length - 1)
      for (let number = 0; number < found.length; number += 1) {
        scores[number] = (scores[number] as number) + (found[number] as number)
      }
    }
    return scores
  }
}

/** The best hits. Sorting numbers is much faster than sorting by a function: that finds what can be among them. */
function best(postings: Postings, scores: Scores, found: Uint32Array, most: number): Hit[] {
  const sorted = new Float64Array(found.length)
  for (let at = 0; at < found.length; at += 1) sorted[at] = scores[found[at] as number] as number
  sorted.sort()
  const least = sorted[Math.max(0, sorted.length - most)] as number
  const hits: Hit[] = []
  for (const number of found) {
    const score = scores[number] as number
    const id = score >= least ? postings.idOf(number) : undefined
    if (id !== undefined) hits.push({ id, score })
  }
  return hits.sort((a, b) => b.score - a.score || (a.id < b.id ? -1 : 1)).slice(0, most)
}
