/**
 * A search index in memory. Ranks by BM25 (Robertson and Zaragoza, "The Probabilistic Relevance Framework", 2009),
 * field by field. A search is a generator, so that it can be run in slices (`http/turns.ts`).
 */

import { createPostings, type Occurrences, type Postings } from './postings.ts'

/** BM25's parameters, as the literature recommends them. */
const saturation = 1.2
const lengthShare = 0.75

/** Ranking one document takes about 0.6 µs; in the unit of `sliceCost`. */
const costPerDocument = 15
const documentsPerStep = 500

export interface WordIndex extends Pick<Postings, 'size' | 'add' | 'remove'> {
  /**
   * The best `most` documents that `isWanted` and that have every word; with `anyWord`, that have any. The last word
   * counts as the beginning of others too, if it has `beginningMin` letters. Best first; equals by id.
   */
  search(query: readonly string[], options: SearchOptions): Generator<number, Hit[]>
}

export interface SearchOptions {
  readonly most: number
  readonly beginningMin: number
  readonly anyWord?: boolean
  readonly isWanted: (id: string) => boolean
}

export interface Hit {
  readonly id: string
  readonly score: number
}

/** `weights`: of the fields, in order. */
export function createWordIndex(weights: readonly number[]): WordIndex {
  const postings = createPostings(weights.length)
  const index = { postings, weights }
  return {
    get size() {
      return postings.size
    },
    add: postings.add,
    remove: postings.remove,
    *search(given, { most, beginningMin, anyWord, isWanted }) {
      // The last word stays last where it is repeated.
      const query = [...new Set([...given].reverse())].reverse()
      const last = query.at(-1)
      if (last === undefined) return []
      const isLastBeginning = [...last].length >= beginningMin
      const scores = yield* (anyWord === true ? withAny : withEvery)(index, query, isLastBeginning)
      const wanted: Hit[] = []
      for (const [id, score] of scores) if (isWanted(id)) wanted.push({ id, score })
      return best(wanted, most)
    },
  }
}

interface Index {
  readonly postings: Postings
  readonly weights: readonly number[]
}

type Scores = Map<string, number>

/** How much it says of a document that it has a word. */
function rarityOf({ postings }: Index, { size }: Occurrences): number {
  return Math.log(1 + (postings.size - size + 0.5) / (size + 0.5))
}

function scoreOf({ postings, weights }: Index, found: Occurrences, id: string, rarity: number): number {
  const counts = found.get(id)
  if (counts === undefined) return 0
  let sum = 0
  for (const [field, weight] of weights.entries()) {
    const count = counts[field] as number
    if (count === 0) continue
    const length = 1 - lengthShare + lengthShare * postings.relativeLength(id, field)
    sum += (weight * count * (saturation + 1)) / (count + saturation * length)
  }
  return sum * rarity
}

/** The scores of all documents that have the word, or one that begins with it. */
function* scoresOf(index: Index, word: string, isBeginning: boolean): Generator<number, Scores> {
  const { postings } = index
  const scores: Scores = new Map()
  const exact = postings.of(word)
  const rarityOfWord = exact === undefined ? Number.POSITIVE_INFINITY : rarityOf(index, exact)
  for (const other of [word, ...(isBeginning ? postings.longer(word) : [])]) {
    const found = postings.of(other)
    if (found === undefined) continue
    // A longer word may be rarer, and must not say more than the word itself.
    const rarity = (Math.min(rarityOf(index, found), rarityOfWord) * word.length) / other.length
    let steps = 0
    for (const id of found.keys()) {
      if (steps % documentsPerStep === 0) yield Math.min(found.size - steps, documentsPerStep) * costPerDocument
      steps += 1
      scores.set(id, Math.max(scores.get(id) ?? 0, scoreOf(index, found, id, rarity)))
    }
  }
  return scores
}

/** Documents that have all words. The rarest comes first: the others are looked up for what has it. */
function* withEvery(index: Index, query: readonly string[], isLastBeginning: boolean): Generator<number, Scores> {
  const last = query.length - 1
  const exact = query.slice(0, isLastBeginning ? last : undefined).map((word) => index.postings.of(word))
  if (exact.some((found) => found === undefined)) return new Map()
  const rarest = (exact as Occurrences[]).sort((a, b) => a.size - b.size)
  const ending = isLastBeginning ? yield* scoresOf(index, query[last] as string, true) : undefined
  const [first] = rarest
  const candidates = ending !== undefined && (first === undefined || ending.size < first.size) ? ending : first
  const scores: Scores = new Map()
  let steps = 0
  for (const id of candidates?.keys() ?? []) {
    if (steps % documentsPerStep === 0) yield documentsPerStep * costPerDocument * query.length
    steps += 1
    const end = ending?.get(id)
    if ((ending !== undefined && end === undefined) || !rarest.every((found) => found.has(id))) continue
    let sum = end ?? 0
    for (const found of rarest) sum += scoreOf(index, found, id, rarityOf(index, found))
    scores.set(id, sum)
  }
  return scores
}

function* withAny(index: Index, query: readonly string[], isLastBeginning: boolean): Generator<number, Scores> {
  const scores: Scores = new Map()
  for (const [at, word] of query.entries()) {
    const found = yield* scoresOf(index, word, isLastBeginning && at === query.length - 1)
    for (const [id, more] of found) scores.set(id, (scores.get(id) ?? 0) + more)
  }
  return scores
}

/** The best hits. Sorting numbers is much faster than sorting by a function: that finds what can be among them. */
function best(hits: Hit[], most: number): Hit[] {
  const byScore = (a: Hit, b: Hit) => b.score - a.score || (a.id < b.id ? -1 : 1)
  if (hits.length <= most) return hits.sort(byScore)
  const scores = Float64Array.from(hits, ({ score }) => score).sort()
  const least = scores[scores.length - most] as number
  return hits
    .filter(({ score }) => score >= least)
    .sort(byScore)
    .slice(0, most)
}
