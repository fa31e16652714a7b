/** Words and ranking (contract, 9.5). */

import { describe, expect, test } from 'bun:test'
import { sliceCost } from '../../src/limits.ts'
import { drained } from '../../src/schema/steps.ts'
import { createWordIndex } from '../../src/search/word-index.ts'
import { wordsOf } from '../../src/search/words.ts'
import { random as seeded } from '../support/random.ts'

describe('words', () => {
  for (const [text, words] of [
    ['createIssue, create_issue', 'create issue create issue'],
    ['HTTPServer v2', 'http server v2'],
    ['Crème brûlée — ÉCOLE', 'creme brulee ecole'],
    ['acme/weather-API', 'acme weather api'],
    ['Straße ﬁle ２', 'straße file 2'],
    ['天気予報 погода', '天気予報 погода'],
    ['…!', ''],
    [`x ${'n'.repeat(80)}`, `x ${'n'.repeat(64)} ${'n'.repeat(16)}`],
  ] as const)
    test(`of ${text}`, () => expect(wordsOf(text).join(' ')).toBe(words))
})

const everything = { most: 500, isWanted: () => true }
const find = (index: ReturnType<typeof createWordIndex>, text: string, options: object = {}) =>
  drained(index.search(wordsOf(text), { ...everything, ...options })).map(({ id }) => id)

describe('ranking', () => {
  const index = createWordIndex([4, 1])
  const add = (id: string, name: string, text: string) => index.add(id, [name, text].map(wordsOf))
  add('a', 'weather', 'forecasts for the world')
  add('b', 'news', 'weather and other news of the world')
  add('c', 'maps', 'roads, roads and more roads')
  add('d', 'weathering', 'of stones')

  test('the name says more than the text', () => expect(find(index, 'weather')).toEqual(['a', 'd', 'b']))
  test('every word must be there', () => {
    expect(find(index, 'weather world')).toEqual(['a', 'b'])
    expect(find(index, 'weather roads')).toEqual([])
    expect(find(index, 'weather roads', { anyWord: true }).sort()).toEqual(['a', 'b', 'c'])
  })
  test('the last one is a beginning too, from three letters on, and the others are not', () => {
    expect(find(index, 'world weat')).toEqual(['a', 'b'])
    expect(find(index, 'weat world')).toEqual([])
    expect(find(index, 'we')).toEqual([])
    expect(find(index, 'nowhere wea')).toEqual([])
  })
  test('only what is wanted, and the best of it', () => {
    expect(find(index, 'weather', { isWanted: (id: string) => id !== 'a' })).toEqual(['d', 'b'])
    expect(find(index, 'weather', { most: 1 })).toEqual(['a'])
  })
  test('nothing is found for nothing', () => expect(find(index, ' - ')).toEqual([]))
  test('what is removed is not found, and changes no rank of others', () => {
    const before = drained(index.search(['roads'], everything))
    add('e', 'weather', 'weather')
    expect(find(index, 'weather')).toContain('e')
    index.remove('e')
    expect(find(index, 'weather')).toEqual(['a', 'd', 'b'])
    expect(drained(index.search(['roads'], everything))).toEqual(before)
  })
})

test('finds what a plain look at all documents finds, in the same order, while documents come and go', () => {
  const { int: pick, chance } = seeded(7)
  const vocabulary = Array.from({ length: 30 }, (_, i) => `${'abc'[i % 3]}${'xyz'[pick(3)]}${'mn'[i % 2]}${i}`)
  const weights = [4, 3, 2, 1]
  const documents = new Map<string, string[][]>()
  const index = createWordIndex(weights)
  const some = (most: number) => Array.from({ length: pick(most) }, () => vocabulary[pick(30)] as string)

  /** BM25 by its formula, on all documents. */
  function plainly(query: string[]): string[] {
    const words = [...new Set([...query].reverse())].reverse()
    const count = documents.size
    const averages = weights.map(
      (_, field) => [...documents.values()].reduce((sum, doc) => sum + (doc[field]?.length ?? 0), 0) / count,
    )
    const rarityOf = (word: string) => {
      const having = [...documents.values()].filter((one) => one.flat().includes(word)).length
      return having === 0 ? Number.POSITIVE_INFINITY : Math.log(1 + (count - having + 0.5) / (having + 0.5))
    }
    const scoreOf = (word: string, doc: string[][], rarity: number) =>
      weights.reduce((sum, weight, field) => {
        const own = doc[field] ?? []
        const times = own.filter((one) => one === word).length
        if (times === 0) return sum
        const length = 0.25 + (0.75 * own.length) / (averages[field] as number)
        return sum + (weight * times * 2.2 * rarity) / (times + 1.2 * length)
      }, 0)
    const found: { id: string; score: number }[] = []
    for (const [id, doc] of documents) {
      const all = doc.flat()
      const parts = words.map((word, at) => {
        const isLast = at === words.length - 1 && word.length >= 3
        const fitting = new Set(all.filter((one) => one === word || (isLast && one.startsWith(word))))
        return [...fitting].map((one) => {
          const rarity = Math.min(rarityOf(one), rarityOf(word))
          return (scoreOf(one, doc, rarity) * word.length) / one.length
        })
      })
      if (parts.some((scores) => scores.length === 0)) continue
      found.push({ id, score: parts.reduce((sum, scores) => sum + Math.max(...scores), 0) })
    }
    // What is equal but for rounding stands in any order.
    return found
      .sort((a, b) => Number(b.score.toFixed(9)) - Number(a.score.toFixed(9)) || (a.id < b.id ? -1 : 1))
      .map(({ id }) => id)
  }

  for (let step = 0; step < 400; step += 1) {
    const id = `d${pick(60)}`
    index.remove(id)
    documents.delete(id)
    if (chance(0.8)) {
      const fields = [some(3), some(4), some(8), some(12)]
      documents.set(id, fields)
      index.add(id, fields)
    }
    const query = [
      ...some(3),
      chance(0.5) ? (vocabulary[pick(30)] as string) : `${'abc'[pick(3)]}${'xyz'[pick(3)]}${'mn'[pick(2)]}`,
    ]
    expect({ step, query, found: drained(index.search(query, everything)).map((hit) => hit.id) }).toEqual({
      step,
      query,
      found: plainly(query),
    })
  }
})

test('documents that are not public change no score of others, and are found themselves', () => {
  const { int: pick } = seeded(11)
  const some = (most: number) => Array.from({ length: 1 + pick(most) }, () => `wor${'abcdefgh'[pick(8)]}`)
  const [alone, among] = [createWordIndex([4, 1]), createWordIndex([4, 1])]
  for (let i = 0; i < 60; i += 1) {
    const fields = [some(3), some(20)]
    for (const index of [alone, among]) index.add(`p${i}`, fields)
    among.add(`x${i}`, [some(3), [...some(40), 'only']], false)
    if (i % 3 === 0) among.remove(`x${i}`)
  }
  const isWanted = (id: string) => id.startsWith('p')
  for (const query of [
    ['wora'],
    ['wor'],
    ['wora', 'worb', 'worc', 'word'],
    ['worh', 'wora', 'wor'],
    ['only'],
    ['worz'],
  ])
    for (const anyWord of [false, true]) {
      const [expected, found] = [alone, among].map((index) =>
        drained(index.search(query, { most: 500, anyWord, isWanted })),
      )
      expect({ query, found }).toEqual({ query, found: expected })
    }
  expect(drained(among.search(['only'], everything))).toHaveLength(40)
  // Where none is public, all are found.
  const hidden = createWordIndex([4, 1])
  hidden.add('x', [['a'], ['word']], false)
  expect(drained(hidden.search(['word'], everything))).toMatchObject([{ id: 'x', score: expect.any(Number) }])
})

test('no step of a search costs more than a turn', () => {
  const index = createWordIndex([4, 3, 2, 1])
  const words = (i: number) => [`common${i % 400}x`, 'common', `w${i}`]
  for (let i = 0; i < 20_000; i += 1) index.add(`d${i}`, [words(i), [], words(i + 1), ['common', 'text']])
  for (const query of [['common'], ['com'], ['text', 'com'], ['common', 'text', 'w1'], ['w1', 'common']]) {
    for (const anyWord of [false, true]) {
      const search = index.search(query, { ...everything, anyWord })
      let [steps, dearest] = [0, 0]
      for (let step = search.next(); step.done !== true; step = search.next()) {
        steps += 1
        dearest = Math.max(dearest, step.value)
      }
      expect({ query, isCheap: dearest <= sliceCost, hasSteps: steps > 1 }).toEqual({
        query,
        isCheap: true,
        hasSteps: true,
      })
    }
  }
})

test('accents of any number and order change no word', () => {
  for (const marks of ['\u0301', '\u0323\u0301', '\u0344', '\uff9e\u0301'])
    expect(wordsOf(`Cafe${marks.repeat(200)} noir`)).toEqual(['cafe', 'noir'])
  // Pieces do not cut a character in two.
  for (let at = 40; at < 62; at += 1) expect(wordsOf(`${'x'.repeat(at)}𝐚é`)).toEqual([`${'x'.repeat(at)}ae`])
})

test('a text is no longer than three times what it was, whatever its characters stand for', () => {
  expect(wordsOf('\ufdfa'.repeat(1000)).join('').length).toBeLessThanOrEqual(3000)
  expect(wordsOf('한국어'.repeat(20)).join('')).toBe('한국어'.repeat(20).normalize('NFKD'))
})
