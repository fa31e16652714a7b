/** Lists of many connections, and searches in them, are made in small steps and in bounded memory. */

import { describe, expect, test } from 'bun:test'
import type { Allowance } from '../../../src/fairness/allowance.ts'
import { joining, joiningTexts, listing, type Shown } from '../../../src/features/endpoint/joined-lists.ts'
import { readingRecord, writingLines, writingRecord } from '../../../src/features/endpoint/kept-record.ts'
import { joinedDefinitionsMax } from '../../../src/features/endpoint/list-problem.ts'
import { createRenderings, rendering } from '../../../src/features/endpoint/rendered-offer.ts'
import { writingFound } from '../../../src/features/endpoint/search-tools.ts'
import { searching, signatureOf, ToolIndexes } from '../../../src/features/endpoint/tool-search.ts'
import type { Definition } from '../../../src/features/gateway/tool-requests.ts'
import { sliceCost } from '../../../src/limits.ts'
import { drained } from '../../../src/schema/steps.ts'

/** A connection that offers these tools. */
function connection(connectionId: string, tools: readonly Definition[]): Shown {
  const lines = drained(writingLines('tools', tools))
  const offer = { tools: lines, prompts: [], resources: [], resourceTemplates: [], era: 'handshake' } as const
  const kept = drained(readingRecord(drained(writingRecord(offer, { of: '', listedAt: '' }))))
  const lists = drained(rendering(connectionId, kept, 46))
  return { namespace: 'ada', connectionId, kept, lists } as unknown as Shown
}

const named = (count: number, more: object = {}) =>
  Array.from({ length: count }, (_, index) => ({ name: `t${index.toString(36)}`, ...more }))

/** The costs that work yields, and its result. */
function steps<T>(work: Generator<number, T>): { readonly result: T; readonly sum: number; readonly most: number } {
  let [sum, most] = [0, 0]
  for (;;) {
    const step = work.next()
    if (step.done) return { result: step.value, sum, most }
    sum += step.value
    most = Math.max(most, step.value)
  }
}

describe('in steps', () => {
  const shown = [connection('a', named(5000)), connection('b', named(5000))]

  test('lists are joined and written', () => {
    const joined = steps(joining(shown, 'tools'))
    expect(joined.result.definitions).toHaveLength(10_000)
    const listed = steps(listing('tools', joined.result, { isStateless: false }))
    expect(JSON.parse(listed.result).tools).toHaveLength(10_000)
    const own = steps(joiningTexts(joined.result.definitions, (one) => one.ownJson))
    expect(JSON.parse(`[${own.result}]`)[5001]).toEqual({ name: 't1' })
    for (const { sum, most } of [joined, listed, own]) {
      // A microsecond and more for each.
      expect(sum).toBeGreaterThanOrEqual(10_000 * 40)
      expect(most).toBeLessThan(sliceCost / 5)
    }
  })

  test('a search looks at each tool, and parses those that may be for apps alone', async () => {
    const text = 'x'.repeat(100_000)
    const apps = named(20, { _meta: { ui: { visibility: ['app'] } }, description: text })
    const all = [...shown, connection('c', apps)]
    const { result, sum } = steps(searching(all, await new ToolIndexes().of(unbounded, all, 46), 't1', 20))
    expect(result.map(({ connectionId }) => connectionId).sort()).toEqual(['a', 'b'])
    expect(sum).toBeGreaterThan(20 * 100_000)
  })
})

test('definitions are made once for each kept list and length of names', () => {
  const renderings = createRenderings()
  const [kept, other] = ['a', 'b'].map((id) => connection(id, named(3)).kept)
  if (kept === undefined || other === undefined) throw new Error('nothing is kept')
  const short = drained(renderings('a', kept, 46))
  expect(drained(renderings('a', kept, 46))).toBe(short)
  expect(drained(renderings('a', kept, 64))).not.toBe(short)
  expect(drained(renderings('b', other, 46)).tools.map(({ listed }) => listed)).toEqual(['b__t0', 'b__t1', 'b__t2'])
})

test('past so many definitions, the connections with the most are left out', () => {
  const half = named(joinedDefinitionsMax / 2)
  const shown = ['a', 'b', 'c'].map((id) => connection(id, id === 'b' ? half : [...half, { name: 'last' }]))
  const { definitions, skipped } = drained(joining(shown, 'tools'))
  expect(definitions).toHaveLength(joinedDefinitionsMax / 2)
  expect(skipped.map(({ connectionId, error }) => [connectionId, error])).toEqual([
    ['a', 'too_large'],
    ['c', 'too_large'],
  ])
  // One that lists as many as there may be keeps no later one from being listed.
  const flood = connection('a', named(joinedDefinitionsMax))
  const beside = drained(joining([flood, connection('b', [{ name: 'one' }])], 'tools'))
  expect([beside.definitions.map(({ own }) => own), beside.skipped[0]?.connectionId]).toEqual([['one'], 'a'])
})

test('a search answers whole definitions of so many characters, and the rest by their signatures', () => {
  const large = named(3, { description: 'x'.repeat(400_000) })
  const [shown] = [connection('a', [...large, { name: 'small' }])]
  const { definitions } = drained(joining([shown], 'tools'))
  // biome-ignore lint/correctness/useYield: work without steps
  function* found() {
    return definitions
  }
  const { content, structuredContent } = JSON.parse(`{${drained(writingFound(found(), true))}}`)
  expect(JSON.parse(content[0].text)).toEqual(structuredContent)
  const { tools } = structuredContent
  expect(tools.map((one: object) => ('signature' in one ? 'signature' : 'whole'))).toEqual([
    ...['whole', 'whole', 'signature', 'whole'],
  ])
})

test('a signature shows no more than so many characters of names that may have megabytes', () => {
  const signature = (properties: object) => signatureOf('a__b', { name: 'b', inputSchema: { properties } })
  expect(signature({ 'x \n y': { type: 'a\tb' }, z: {} })).toBe('a__b(x y?: a b, z?: any)')
  for (const name of ['x '.repeat(10 ** 6), 'x'.repeat(10 ** 6)]) {
    expect(signature({ [name]: {} })).toHaveLength(400)
    expect(signature({ [name]: { type: name }, [`${name}y`]: {} })).toEndWith('…')
  }
  const many = Object.fromEntries(Array.from({ length: 1000 }, (_, index) => [`p${index}`, {}]))
  expect(signature(many)).toHaveLength(400)
})

describe('an index', () => {
  /** Characters that were asked for to parse. */
  const asked: number[] = []
  const allowance = {
    parse: (characters: number, work: Generator<number, unknown>) => {
      asked.push(characters)
      return drained(work)
    },
  } as unknown as Allowance
  const indexes = new ToolIndexes()
  const find = async (shown: readonly Shown[], query: string) =>
    drained(searching(shown, await indexes.of(allowance, shown, 46), query, 20)).map(({ own }) => own)

  test('takes no more memory for large texts: each tool has an equal part, with its name', async () => {
    const words = Array.from({ length: 600 }, (_, index) => `w${index.toString(36)}`).join(' ')
    const shown = [
      connection('d', [...named(999, { description: `first ${words}`, title: words }), { name: 'needle' }]),
    ]
    expect(await find(shown, 'needle')).toEqual(['needle'])
    expect(await find(shown, 'tra')).toEqual(['tra'])
    expect(asked).toHaveLength(1)
    // As much as the largest response of a server.
    expect(asked[0]).toBeLessThan(4 * 2 ** 20)
  })

  test('counts although it has no tools, and is made again past so many', async () => {
    const of = (id: string) => [{ namespace: 'ada', connectionId: id, kept: { id, lists: { tools: [] } } }]
    const made = async (id: string) => {
      const before = asked.length
      await indexes.of(allowance, of(id) as unknown as Shown[], 46)
      return asked.length - before
    }
    for (let count = 0; count < 8000; count += 1) await made(`c${count}`)
    expect([await made('c7999'), await made('c0')]).toEqual([0, 1])
  })

  test('tells a caller who sees a part of the tools nothing of the words of the others', async () => {
    const seen = [
      { name: 'a', description: 'zebra' },
      { name: 'b', description: 'quagga' },
    ]
    const order = async (word: string) => {
      const whole = connection('g', [...seen, ...named(50, { description: word })])
      const isSeen = ({ own }: { own: string }) => own === 'a' || own === 'b'
      const narrowed = { ...whole, lists: { ...whole.lists, tools: whole.lists?.tools.filter(isSeen) } } as Shown
      return [await find([narrowed], 'zebra quagga'), await find([narrowed], 'quagga zebra')]
    }
    expect(await order('zebra')).toEqual(await order('quagga'))
    expect((await order('zebra'))[0]).toHaveLength(2)
  })

  test('finds for a caller who sees a part of the tools none of the others that another caller found', async () => {
    const whole = connection('h', [{ name: 'open' }, { name: 'hidden' }])
    const isSeen = ({ own }: { own: string }) => own === 'open'
    const narrowed = { ...whole, lists: { ...whole.lists, tools: whole.lists?.tools.filter(isSeen) } } as Shown
    expect(await find([whole], 'open hidden')).toEqual(['hidden', 'open'])
    expect(await find([narrowed], 'open hidden')).toEqual(['open'])
    expect(await find([whole], 'open hidden')).toEqual(['hidden', 'open'])
  })

  test('knows after the first search which tools may be found', async () => {
    const shown = [connection('i', named(1000))]
    const costs: number[] = []
    for (let count = 0; count < 2; count += 1)
      costs.push(steps(searching(shown, await indexes.of(allowance, shown, 46), 'ta', 20)).sum)
    expect(costs[1]).toBeLessThan((costs[0] as number) / 3)
  })

  test('finds no tool that its server lists twice', async () => {
    expect(await find([connection('j', [{ name: 'twin' }, { name: 'twin' }, { name: 'one' }])], 'twin one')).toEqual([
      'one',
    ])
  })

  test('has twenty thousand tools, of which a long list leaves the others their part', async () => {
    asked.length = 0
    const shown = [connection('e', named(19_999)), connection('f', [{ name: 'inside' }, { name: 'outside' }])]
    expect(await find(shown, 'inside')).toEqual(['inside'])
    expect(await find(shown, 'outside')).toEqual(['outside'])
    const last = named(19_999)
      .map(({ name }) => name)
      .slice(-2)
    expect(await find(shown, last[0] ?? '')).toEqual([last[0] ?? ''])
    expect(await find(shown, last[1] ?? '')).not.toContain(last[1])
    expect(asked[0]).toBeLessThan(4 * 2 ** 20)
  })
})

const unbounded = { parse: (_: number, work: Generator<number, unknown>) => drained(work) } as unknown as Allowance
