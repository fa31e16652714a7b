/** Which tool, prompt or resource a request names. */

import { expect, test } from 'bun:test'
import { namedBy } from '../../src/model/mcp.ts'

test('a request names what stands under the parameter of its method, of any type', () => {
  expect(namedBy('tools/call', { name: 'a', uri: 'b' })).toBe('a')
  expect(namedBy('prompts/get', { name: 'a' })).toBe('a')
  expect(namedBy('resources/read', { name: 'a', uri: 'b' })).toBe('b')
  expect(namedBy('tools/call', { name: 5 })).toBe(5)
})

test('it names nothing without it', () => {
  const inherited: unknown = Object.create({ name: 'a' })
  for (const params of [undefined, null, 'name', 5, {}, { uri: 'b' }, inherited])
    expect(namedBy('tools/call', params)).toBeUndefined()
  expect(namedBy('tools/list', { name: 'a' })).toBeUndefined()
})
