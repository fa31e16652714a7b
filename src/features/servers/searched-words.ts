/**
 * The words by which servers are found. They take more memory than what they are made of, so each server and each
 * namespace has a bound: nobody fills the memory of the platform with words.
 */

import { namespaceSearchedWordsMax, searchedNameWordsMax, searchedWordsMax } from '../../limits.ts'
import { createWordIndex, type WordIndex } from '../../search/word-index.ts'
import { wordsOf } from '../../search/words.ts'

/** How much a word says in each field (door contract, 2.4): qualifiedName, displayName, names of tools, description. */
const weights = [4, 3, 2, 1]

export interface SearchedServer {
  readonly qualifiedName: string
  readonly namespace: string
  /** Of the fields, in the order of `weights`. */
  readonly texts: readonly string[]
  /** Those that are not change no score of others. */
  readonly isListed: boolean
}

export interface SearchedWords extends Pick<WordIndex, 'search'> {
  /** Replaces what was put for the server before. */
  put(server: SearchedServer): void
  remove(qualifiedName: string): void
}

export function createSearchedWords(): SearchedWords {
  const words = createWordIndex(weights)
  /** How many different words are indexed: of a server, and of all servers of a namespace. */
  const counts = new Map<string, { readonly namespace: string; readonly count: number }>()
  const namespaceCounts = new Map<string, number>()

  function remove(qualifiedName: string): void {
    const before = counts.get(qualifiedName)
    if (before === undefined) return
    const { namespace, count } = before
    words.remove(qualifiedName)
    counts.delete(qualifiedName)
    const others = (namespaceCounts.get(namespace) ?? 0) - count
    if (others > 0) namespaceCounts.set(namespace, others)
    else namespaceCounts.delete(namespace)
  }

  return {
    search: words.search,
    remove,
    put({ qualifiedName, namespace, texts, isListed }) {
      remove(qualifiedName)
      const others = namespaceCounts.get(namespace) ?? 0
      const room = Math.max(namespaceSearchedWordsMax - others, searchedNameWordsMax)
      const { fields, count } = firstWords(texts.map(wordsOf), Math.min(room, searchedWordsMax))
      words.add(qualifiedName, fields, isListed)
      counts.set(qualifiedName, { namespace, count })
      namespaceCounts.set(namespace, others + count)
    },
  }
}

/** The fields' words up to the first `most` different ones, and how many different ones these are. */
function firstWords(
  fields: readonly string[][],
  most: number,
): { readonly fields: string[][]; readonly count: number } {
  const seen = new Set<string>()
  const kept = fields.map((words) =>
    words.filter((word) => {
      if (seen.size < most) seen.add(word)
      return seen.has(word)
    }),
  )
  return { fields: kept, count: seen.size }
}
