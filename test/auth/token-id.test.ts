/** Whose token an id names, by the id alone. */

import { expect, test } from 'bun:test'
import { isTokenIdOf, newTokenId } from '../../src/auth/token-id.ts'
import { tokenIdShape } from '../../src/model/token.ts'

const key = Buffer.alloc(32, 1)

test('an id is different each time, and names its user alone, with this key alone', () => {
  const ids = Array.from({ length: 100 }, () => newTokenId(key, 'ada'))
  expect(new Set(ids).size).toBe(100)
  for (const id of ids) {
    expect(id).toMatch(tokenIdShape)
    expect(isTokenIdOf(key, id, 'ada')).toBe(true)
    for (const other of ['grace', 'ad', 'adaa', 'organization:ada', '']) expect(isTokenIdOf(key, id, other)).toBe(false)
    expect(isTokenIdOf(Buffer.alloc(32, 2), id, 'ada')).toBe(false)
  }
})

test('an altered id, one in another spelling, and the id of something else name nobody', () => {
  const id = newTokenId(key, 'ada')
  const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
  for (let at = 4; at < id.length; at += 1)
    for (const letter of letters) {
      const altered = id.slice(0, at) + letter + id.slice(at + 1)
      expect(isTokenIdOf(key, altered, 'ada')).toBe(altered === id)
    }
  for (const other of ['', 'tok_', `${id}A`, id.slice(0, -1), `tok_${'A'.repeat(22)}`, 'grant_1'])
    expect(isTokenIdOf(key, other, 'ada')).toBe(false)
})
