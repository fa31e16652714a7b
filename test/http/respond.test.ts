/** What a client has already, by its tags. */

import { expect, test } from 'bun:test'
import { allowanceOf } from '../../src/fairness/allowance.ts'
import { createFairness } from '../../src/fairness/fairness.ts'
import { ownerOf } from '../../src/fairness/owner.ts'
import { Paces } from '../../src/fairness/pace.ts'
import { Shares } from '../../src/fairness/shares.ts'
import { isUnchanged, jsonResponse, wholeResponse } from '../../src/http/respond.ts'
import { withAllowance } from '../support/allowance.ts'
import { clockOf } from '../support/clock.ts'

test('an answer is unchanged where its tag is among those that the client knows', () => {
  const rows: [known: string | undefined, etag: string | undefined, isUnchanged: boolean][] = [
    ['"a"', '"a"', true],
    ['W/"a"', '"a"', true],
    ['"b", "a"', '"a"', true],
    ['*', '"a"', true],
    ['"b"', '"a"', false],
    ['a', '"a"', false],
    [undefined, '"a"', false],
    ['*', undefined, false],
    ['"a"', undefined, false],
    [undefined, undefined, false],
  ]
  for (const [known, etag, expected] of rows) {
    const headers = known === undefined ? {} : { 'if-none-match': known }
    const request = new Request('http://a/', { headers })
    expect({ known, etag, isUnchanged: isUnchanged(request, etag) }).toEqual({ known, etag, isUnchanged: expected })
  }
})

test('a text or bytes are JSON, with the headers that are given', async () => {
  for (const body of ['{"a":1}', new TextEncoder().encode('{"a":1}')]) {
    const response = jsonResponse(body, { 'x-a': '1' })
    expect([Object.fromEntries(response.headers), await response.text()]).toEqual([
      { 'content-type': 'application/json', 'x-a': '1' },
      '{"a":1}',
    ])
  }
})

test('a large answer that finds no room takes its owner’s time all the same', () => {
  const fairness = { ...createFairness(), memory: new Shares(0), time: new Paces(clockOf(() => 0)) }
  const request = withAllowance(new Request('http://a/'), {}, fairness)
  expect(() => wholeResponse(request, 'x'.repeat(40 * 2 ** 20))).toThrow('too many unread responses')
  expect(fairness.time.wait(ownerOf(allowanceOf(request).holder))).toBeGreaterThan(0)
})

test('a large answer that its client has already takes its owner’s time, and no memory', async () => {
  const fairness = { ...createFairness(), memory: new Shares(4 * 300_000), time: new Paces(clockOf(() => 0)) }
  const request = withAllowance(new Request('http://a/', { headers: { 'if-none-match': '"1"' } }), {}, fairness)
  for (let i = 0; i < 9; i += 1) {
    const response = wholeResponse(request, 'x'.repeat(300_000), { etag: '"1"', headers: { a: 'b' } })
    expect([response.status, response.headers.get('a'), await response.text()]).toEqual([304, 'b', ''])
  }
  expect(fairness.time.wait(ownerOf(allowanceOf(request).holder))).toBeGreaterThan(0)
  const other = wholeResponse(request, 'x', { etag: '"2"' })
  expect([other.status, other.headers.get('etag'), await other.text()]).toEqual([200, '"2"', 'x'])
})

test('a large answer counts for its owner until its client has read it, or is gone', async () => {
  const fairness = { ...createFairness(), memory: new Shares(4 * 300_000) }
  const request = withAllowance(new Request('http://a/'), {}, fairness)
  const answer = () => wholeResponse(request, 'x'.repeat(300_000), { status: 201, headers: { a: 'b' } })
  const first = answer()
  expect([first.status, first.headers.get('a')]).toEqual([201, 'b'])
  expect(answer).toThrow('This caller has too many unread responses open: read or close some')
  expect(await first.text()).toHaveLength(300_000)
  const second = answer()
  expect(answer).toThrow('too many unread responses')
  await second.body?.cancel()
  // Once only: what is given back is there once.
  await answer().text()
  answer()
  expect(answer).toThrow('too many unread responses')
  // A small one is in the system's buffers.
  expect(await wholeResponse(request, 'é').text()).toBe('é')
})

test('an answer of tens of kilobytes takes its owner’s time, and a small one none', () => {
  const spent: number[] = []
  class Noted extends Paces {
    override spendAtOnce(_: string, milliseconds: number) {
      spent.push(milliseconds)
    }
  }
  const request = withAllowance(new Request('http://a/'), {}, { ...createFairness(), time: new Noted() })
  for (const kilobytes of [32, 64, 256]) wholeResponse(request, 'x'.repeat(kilobytes * 1024))
  expect(spent).toEqual([0.25, 1])
})
