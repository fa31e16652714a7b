/** What every engine must do: the storage contract, promise by promise. */

import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { prefixRange } from '../../src/storage/keys.ts'
import { type ConcatenatedValues, type Entry, type Range, type Store, StoreError } from '../../src/storage/store.ts'

const bytes = (text: string) => Buffer.from(text)
const entry = (key: string, value: string): Entry => ({ key: bytes(key), value: bytes(value) })
const text = (value: Uint8Array | undefined) => (value === undefined ? undefined : Buffer.from(value).toString())
const texts = (entries: readonly Entry[]) => entries.map(({ key, value }) => `${text(key)}=${text(value)}`)
const between = (gte: string, lt: string, limit = 100): Range => ({ gte: bytes(gte), lt: bytes(lt), limit })

export function storeConformance(name: string, open: () => Promise<Store> | Store): void {
  describe(`${name} keeps the storage contract`, () => {
    let store: Store
    beforeEach(async () => {
      store = await open()
    })
    afterEach(() => store.close())

    const put = (...pairs: readonly (readonly [string, string])[]) =>
      store.commit({ puts: pairs.map(([key, value]) => entry(key, value)) })

    test('get() gives what was put, and undefined for what was not', async () => {
      await put(['a', '1'])
      expect(text(await store.get(bytes('a')))).toBe('1')
      expect(await store.get(bytes('b'))).toBeUndefined()
      // Neither is what stands beside it.
      for (const key of ['A', '`', 'a\0', 'aa']) expect(await store.get(bytes(key))).toBeUndefined()
    })

    test('values of any length come back whole, the empty one too', async () => {
      const lengths = [0, 1, 7, 4095, 4096, 4097, 100_000, 1024 * 1024]
      for (const length of lengths) {
        const value = Buffer.alloc(length, length % 251)
        await store.commit({ puts: [{ key: bytes(`k${length}`), value }] })
      }
      for (const length of lengths) {
        expect(
          Buffer.compare((await store.get(bytes(`k${length}`))) ?? bytes('x'), Buffer.alloc(length, length % 251)),
        ).toBe(0)
      }
    })

    test("what comes out is the caller's to keep", async () => {
      await put(['a', '1'], ['b', '2'])
      const first = await store.get(bytes('a'))
      const pages = [between('a', 'c'), between('b', 'c')].map((range) =>
        store.concatValues(range).then((values) => text(values.wrap('', ''))),
      )
      await store.get(bytes('b'))
      expect([text(first), ...(await Promise.all(pages))]).toEqual(['1', '1,2', '2'])
      first?.fill(0x78)
      expect(text(await store.get(bytes('a')))).toBe('1')
    })

    test('getMany() keeps the order of the keys', async () => {
      await put(['a', '1'], ['b', '2'])
      const values = await store.getMany([bytes('b'), bytes('x'), bytes('a'), bytes('b')])
      expect(values.map(text)).toEqual(['2', undefined, '1', '2'])
      expect(await store.getMany([])).toEqual([])
      await put(...['k1', 'k3', 'k5', 'k7'].map((key) => [key, key] as const))
      for (const keys of [
        ['k1'],
        ['k5', 'k1', 'k3'],
        ['k0', 'k1', 'k2', 'k7', 'k8'],
        ['k7', 'k7'],
        ['k9'],
        ['k4', 'k3'],
      ]) {
        const found = await store.getMany(keys.map(bytes))
        const expected = keys.map((key) => (/[1357]/.test(key) ? key : undefined))
        expect([found.length, found.map(text)]).toEqual([keys.length, expected])
      }
    })

    test('keys are ordered by unsigned bytes, a prefix first', async () => {
      const keys = ['', '\0', '\0\0', '\x7f', '\x80', '\xff', '\xff\xff'].map((tail) =>
        Buffer.from(`k${tail}`, 'latin1'),
      )
      await store.commit({ puts: keys.toReversed().map((key) => ({ key, value: key })) })
      const { entries } = await store.range({ gte: bytes('k'), lt: bytes('l'), limit: 100 })
      expect(entries.map(({ key }) => Buffer.from(key).toString('hex'))).toEqual(keys.map((key) => key.toString('hex')))
    })

    test('range() takes from gte to before lt, and says whether there is more', async () => {
      await put(['a', '1'], ['b', '2'], ['c', '3'], ['d', '4'])
      const cases: [Range, string[], boolean][] = [
        [between('a', 'e'), ['a=1', 'b=2', 'c=3', 'd=4'], false],
        [between('b', 'd'), ['b=2', 'c=3'], false],
        [between('a', 'd', 3), ['a=1', 'b=2', 'c=3'], false],
        [between('a', 'e', 3), ['a=1', 'b=2', 'c=3'], true],
        [between('a', 'e', 4), ['a=1', 'b=2', 'c=3', 'd=4'], false],
        [between('aa', 'bb'), ['b=2'], false],
        [between('e', 'f'), [], false],
        [between('c', 'b'), [], false],
        [between('b', 'b'), [], false],
      ]
      for (const [range, expected, more] of cases) {
        const found = await store.range(range)
        expect({ entries: texts(found.entries), more: found.more }).toEqual({ entries: expected, more })
        const keys = await store.keys(range)
        expect({ keys: keys.keys.map(text), more: keys.more }).toEqual({
          keys: expected.map((e) => e.slice(0, e.indexOf('='))),
          more,
        })
        const read = ({ count, lastKeyIfMore, wrap }: ConcatenatedValues) => ({
          count,
          lastKeyIfMore: text(lastKeyIfMore),
          bytes: text(wrap('', '')),
          wrapped: text(wrap('<', '>')),
        })
        const values = expected.map((e) => e.slice(e.indexOf('=') + 1))
        const last = expected.at(-1)?.split('=')[0]
        const bytes = values.join(',').length
        const { local } = store
        for (const concatenated of [read(await store.concatValues(range)), local?.concatValues(range, bytes, read)]) {
          if (concatenated === undefined) continue
          expect(concatenated).toEqual({
            bytes: values.join(','),
            wrapped: `<${values.join(',')}>`,
            count: values.length,
            lastKeyIfMore: more ? last : undefined,
          })
        }
        if (bytes > 0) expect(local?.concatValues(range, bytes - 1, read)).toBeUndefined()
      }
    })

    test('concatValues() of values that outgrow its buffer', async () => {
      const value = 'v'.repeat(60_000)
      await put(...Array.from({ length: 20 }, (_, i) => [`k${String(i).padStart(2, '0')}`, value] as const))
      const range = between('k', 'l', 19)
      const { count, lastKeyIfMore, wrap } = await store.concatValues(range)
      const { length } = wrap('['.repeat(512), ']'.repeat(512))
      expect({ length, count, lastKeyIfMore: text(lastKeyIfMore) }).toEqual({
        length: 512 + 19 * 60_000 + 18 + 512,
        count: 19,
        lastKeyIfMore: 'k18',
      })
    })

    test('prefixRange() a prefix is everything that begins with it, whatever its last byte', async () => {
      const prefix = Buffer.from([0x78, 0xff, 0xff])
      const inside = [prefix, Buffer.concat([prefix, bytes('a')]), Buffer.concat([prefix, Buffer.from([0xff])])]
      const outside = [Buffer.from([0x78, 0xff, 0xfe, 0xff]), bytes('y')]
      await store.commit({ puts: [...inside, ...outside].map((key) => ({ key, value: bytes('') })) })
      const { keys } = await store.keys({ ...prefixRange(prefix), limit: 100 })
      expect(keys.length).toBe(inside.length)
    })

    test('a commit of very many keys is a commit: whole, with its checks and counts, beside others', async () => {
      const many = Array.from({ length: 20_000 }, (_, i) => `many${String(i).padStart(5, '0')}`)
      await store.load({ puts: [...many.map((key) => entry(key, '1')), entry('version', '1')] })
      const counted = { key: bytes('number'), add: [1] }
      const remove = (version: string) =>
        store.commit({
          checks: [{ key: bytes('version'), value: bytes(version) }],
          counts: [counted],
          deletes: many.map(bytes),
          puts: [entry('version', '2')],
        })
      const there = async () => (await store.keys(between('many', 'manz', 30_000))).keys.length
      const refused = await remove('0')
      expect(refused.ok ? [] : refused.conflicts.map(text)).toEqual(['version'])
      expect(await there()).toBe(20_000)
      const others = Array.from({ length: 20 }, (_, i) =>
        store.commit({ counts: [counted], puts: [entry(`other${i}`, '1')] }),
      )
      expect([await remove('1'), ...(await Promise.all(others))].every(({ ok }) => ok)).toBe(true)
      expect(await there()).toBe(0)
      const [count, version] = await store.getMany([bytes('number'), bytes('version')])
      expect([text(count), text(version)]).toEqual(['21', '2'])
    })

    test('a commit with a check that fails writes nothing and names the key', async () => {
      await put(['a', '1'])
      const result = await store.commit({
        checks: [
          { key: bytes('a'), value: bytes('1') },
          { key: bytes('b'), value: bytes('2') },
          { key: bytes('a'), value: null },
        ],
        puts: [entry('c', '3')],
        deletes: [bytes('a')],
      })
      expect(result.ok ? [] : result.conflicts.map(text)).toEqual(['b', 'a'])
      expect([text(await store.get(bytes('a'))), await store.get(bytes('c'))]).toEqual(['1', undefined])
    })

    test('null checks that nothing is there', async () => {
      const create = () => store.commit({ checks: [{ key: bytes('a'), value: null }], puts: [entry('a', '1')] })
      expect((await create()).ok).toBe(true)
      expect((await create()).ok).toBe(false)
    })

    test('of twenty racing creates one wins; of twenty racing increments none is lost', async () => {
      const creates = Array.from({ length: 20 }, (_, i) =>
        store.commit({ checks: [{ key: bytes('a'), value: null }], puts: [entry('a', String(i))] }),
      )
      expect((await Promise.all(creates)).filter(({ ok }) => ok).length).toBe(1)
      await put(['n', '0'])
      const increment = async (): Promise<void> => {
        const value = await store.get(bytes('n'))
        const next = entry('n', String(Number(text(value)) + 1))
        const { ok } = await store.commit({ checks: [{ key: bytes('n'), value: value ?? null }], puts: [next] })
        if (!ok) await increment()
      }
      await Promise.all(Array.from({ length: 20 }, increment))
      expect(text(await store.get(bytes('n')))).toBe('20')
    })

    test('counts add up, whoever counts at once, and none passes its bound', async () => {
      const key = bytes('u')
      const count = (add: readonly number[], most?: readonly number[]) =>
        store.commit({ counts: [{ key, add, ...(most && { most }) }], puts: [entry('last', add.join())] })
      await Promise.all(Array.from({ length: 20 }, () => count([1, 300])))
      expect(text(await store.get(key))).toBe('20 6000')
      const outcomes = await Promise.all(Array.from({ length: 20 }, () => count([1, 10], [25, 100_000])))
      expect(outcomes.filter(({ ok }) => ok).length).toBe(5)
      expect(text(await store.get(key))).toBe('25 6050')
      expect(await count([1, 1], [25, 100_000])).toEqual({ ok: false, conflicts: [], full: [key] })
      expect(await count([0, 5], [25, 6054])).toEqual({ ok: false, conflicts: [], full: [key] })
      expect(text(await store.get(bytes('last')))).toBe('1,10')
      // What does not grow is never held up, though it is past its bound.
      expect((await count([-1, 0], [3, 4])).ok).toBe(true)
      expect((await store.load({ counts: [{ key, add: [-24, -6050] }] })).ok).toBe(true)
      expect(await store.get(key)).toBeUndefined()
      const stale = { checks: [{ key: bytes('last'), value: null }], counts: [{ key, add: [1] }] }
      expect(await store.commit(stale)).toEqual({ ok: false, conflicts: [bytes('last')], full: [] })
      // Nothing is counted for a write whose check failed, so it says nothing of bounds.
      const both = { ...stale, counts: [{ key, add: [2], most: [1] }] }
      expect(await store.commit(both)).toEqual({ ok: false, conflicts: [bytes('last')], full: [] })
      expect(await store.get(key)).toBeUndefined()
    })

    test('deletes come before puts, and deleting what is not there is fine', async () => {
      await put(['a', '1'], ['b', '2'])
      expect((await store.commit({ deletes: [bytes('a'), bytes('b'), bytes('x')], puts: [entry('a', '3')] })).ok).toBe(
        true,
      )
      expect([text(await store.get(bytes('a'))), await store.get(bytes('b'))]).toEqual(['3', undefined])
    })

    test('a commit that throws on its way writes nothing', async () => {
      const failing = function* () {
        yield entry('a', '1')
        throw new Error('in the middle')
      }
      await expect(store.load({ puts: failing() })).rejects.toThrow('in the middle')
      await expect(
        store.commit({ puts: [entry('a', '1'), { key: Buffer.alloc(1025), value: bytes('') }] }),
      ).rejects.toThrow(StoreError)
      await expect(store.commit({ puts: [entry('a', '1'), { key: bytes(''), value: bytes('') }] })).rejects.toThrow(
        StoreError,
      )
      await put(['z', '1'])
      expect(await store.get(bytes('a'))).toBeUndefined()
    })

    test('load() takes more than fits a request, checks included', async () => {
      const many = function* () {
        for (let i = 0; i < 5000; i += 1) yield entry(`k${String(i).padStart(5, '0')}`, String(i))
      }
      expect((await store.load({ checks: [{ key: bytes('x'), value: bytes('y') }], puts: many() })).ok).toBe(false)
      expect(await store.get(bytes('k00000'))).toBeUndefined()
      expect((await store.load({ puts: many() })).ok).toBe(true)
      const { entries, more } = await store.range(between('k04990', 'l', 5))
      expect({ entries: texts(entries), more }).toEqual({
        entries: ['k04990=4990', 'k04991=4991', 'k04992=4992', 'k04993=4993', 'k04994=4994'],
        more: true,
      })
    })

    test('commitCount() changes with every commit, and with nothing else', async () => {
      const seen = new Set<number | undefined>([store.local?.commitCount()])
      for (const step of ['1', '2', '3']) {
        await (step === '2' ? store.load({ puts: [entry('a', step)] }) : put(['a', step]))
        const commits = store.local?.commitCount()
        expect(commits === undefined || !seen.has(commits)).toBe(true)
        seen.add(commits)
        await store.get(bytes('a'))
        await store.range(between('a', 'b'))
        await store.commit({ checks: [{ key: bytes('a'), value: null }], puts: [entry('b', '1')] })
        expect(store.local?.commitCount()).toBe(commits)
      }
    })

    test('a key that is too long or empty is refused wherever it stands, and the write with it', async () => {
      for (const key of [Buffer.alloc(1025, 'a'), bytes('')]) {
        for (const write of [
          { deletes: [key] },
          { puts: [{ key, value: bytes('') }] },
          { counts: [{ key, add: [1] }] },
        ])
          await expect(store.commit({ ...write })).rejects.toThrow(StoreError)
        await expect(store.commit({ puts: [entry('b', '1')], deletes: [key] })).rejects.toThrow(StoreError)
      }
      expect(await store.get(bytes('b'))).toBeUndefined()
    })

    test('a put of a key that stands twice is the last one', async () => {
      await put(['a', '1'], ['a', '2'])
      expect(text(await store.get(bytes('a')))).toBe('2')
    })

    test('a key of 1,024 bytes is kept', async () => {
      const key = Buffer.alloc(1024, 0x61)
      await store.commit({ puts: [{ key, value: bytes('1') }] })
      expect(text(await store.get(key))).toBe('1')
    })
  })
}
