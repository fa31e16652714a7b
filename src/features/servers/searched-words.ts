/**
 * The words by which servers are found. They take more memory than what they are made of, so each server, namespace and
 * owner has a bound: nobody fills the memory, or leaves no room for the words of others.
 */

import type { Holder } from '../../fairness/owner.ts'
import { Shares } from '../../fairness/shares.ts'
import { allSearchedWordsMax, namespaceSearchedWordsMax, searchedWordsMax } from '../../limits.ts'
import { TextHashes } from '../../schema/text-hashes.ts'
import { createWordIndex } from '../../search/word-index.ts'
import { wordsOf } from '../../search/words.ts'

/** Ours: different words of a server that postern indexes even if its namespace is full: enough for the server's names. Past it: a search does not find the server by its other words. */
const searchedNameWordsMax = 12

/** How much a word says in each field (contract, 9.5): qualifiedName, displayName, names of tools, description. */
const weights = [4, 3, 2, 1]

export function createSearchedWords() {
  const words = createWordIndex(weights)
  const shares = new Shares(allSearchedWordsMax)
  /** How many different words are indexed, of a server and of a namespace. `taken`: of the holder's share. */
  const counts = new Map<string, { readonly holder: Holder; readonly count: number; readonly taken: number }>()
  const namespaceCounts = createCounts()

  function remove(qualifiedName: string): void {
    const before = counts.get(qualifiedName)
    if (before === undefined) return
    const { holder, count, taken } = before
    words.remove(qualifiedName)
    counts.delete(qualifiedName)
    if (taken > 0) shares.giveBack(holder, taken)
    namespaceCounts.add(holder.family, -count)
  }

  return {
    search: words.search,
    remove,
    /**
     * Replaces the words that the server had before. `holder`: the owner of its namespace, with the namespace as the
     * family. `texts`: of the fields, in the order of `weights`. One that is not listed changes no score of others.
     */
    put(qualifiedName: string, holder: Holder, texts: readonly string[], isListed: boolean): void {
      remove(qualifiedName)
      const room = Math.max(namespaceSearchedWordsMax - namespaceCounts.of(holder.family), searchedNameWordsMax)
      const all = texts.map(wordsOf)
      const wanted = firstWords(all, Math.min(room, searchedWordsMax))
      const isTaken = shares.take(holder, wanted.count)
      const { fields, count } = isTaken ? wanted : firstWords(all, searchedNameWordsMax)
      words.add(qualifiedName, fields, isListed)
      counts.set(qualifiedName, { holder, count, taken: isTaken ? count : 0 })
      namespaceCounts.add(holder.family, count)
    },
  }
}

/** Counts by name: those that are zero take no room. Without a name, nothing is counted. */
export function createCounts() {
  const counts = new Map<string, number>()
  return {
    of: (name: string) => counts.get(name) ?? 0,
    add(name: string | undefined, change: number): void {
      if (name === undefined) return
      const count = (counts.get(name) ?? 0) + change
      if (count > 0) counts.set(name, count)
      else counts.delete(name)
    },
  }
}

/** The fields' words up to the first `most` different ones, and how many different ones these are. */
function firstWords(fields: readonly string[][], most: number) {
  const seen = new Set<string>()
  const hashes = new TextHashes()
  const kept = fields.map((words) =>
    words.filter((word) => {
      // Words that were made to have one hash are left out: they would slow down whoever looks them up.
      if (!seen.has(word) && seen.size < most && hashes.add(word)) seen.add(word)
      return seen.has(word)
    }),
  )
  return { fields: kept, count: seen.size }
}
