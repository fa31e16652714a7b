import { expect, test } from 'bun:test'
import { hashedTextsMin, parseForeign, parsingWithin, readJson } from '../../src/schema/json.ts'
import { createPartsCounter } from '../../src/schema/json-parts.ts'
import { drained } from '../../src/schema/steps.ts'
import { TextHashes, textsPerHashMax } from '../../src/schema/text-hashes.ts'
import { oneHash as made } from '../support/one-hash.ts'

const others = Array.from({ length: 50_000 }, (_, i) => `name ${i}`)
const bounds = { depthMax: 10, keysMax: 100_000, valuesMax: 100_000 }

test('texts with one hash are noticed after a few, and others are not, however many they are', () => {
  const hashes = new TextHashes()
  for (const text of others) expect(hashes.add(text)).toBe(true)
  const fresh = new TextHashes()
  expect(made.findIndex((text) => !fresh.add(text))).toBe(textsPerHashMax)
  // Again and again the same is one text.
  const one = new TextHashes()
  for (let i = 0; i < 1000; i += 1) expect(one.add('name')).toBe(true)
})

const some = made.slice(0, 5000)
const shapes: Record<string, string> = {
  'the names of an object': `{${some.map((name) => `"${name}":1`).join()}}`,
  'the names of many objects': `[${some.map((name) => `{"${name}":1}`).join()}]`,
  'the texts of a list': JSON.stringify(some),
  'names with escapes': `{${some.map((name) => `"\\u00${name.charCodeAt(0).toString(16)}${name.slice(1)}":1`).join()}}`,
}
for (const [what, text] of Object.entries(shapes)) {
  test(`JSON is not parsed if ${what} have one hash`, () => {
    const message = 'has too many texts that share one hash'
    expect(readJson(text, bounds)).toEqual({ problem: { place: '', message } })
    expect(drained(parsingWithin(text, bounds))).toBeUndefined()
    expect(() => parseForeign(text)).toThrow(SyntaxError)
    const parts = createPartsCounter(bounds)
    const pieces = Array.from({ length: 40 }, (_, i) =>
      text.slice((i * text.length) / 40, ((i + 1) * text.length) / 40),
    )
    expect(pieces.map((piece) => parts(Buffer.from(piece))).find((problem) => problem !== undefined)).toBe(message)
  })
}

test('what others send is parsed, with as many names as are allowed', () => {
  const text = JSON.stringify(Object.fromEntries(others.map((name) => [name, name])))
  expect(readJson(text, bounds)).toHaveProperty('value')
  expect(drained(parsingWithin(text, bounds))).toBeDefined()
  expect(createPartsCounter(bounds)(Buffer.from(text))).toBeUndefined()
  // So few hold up nobody, but for records of which many are in memory together.
  const few = JSON.stringify(made.slice(0, textsPerHashMax + 1))
  expect(readJson(few, bounds)).toHaveProperty('value')
  expect(readJson(few, { ...bounds, hashedTextsMin: 0 })).toHaveProperty('problem')
  expect(parseForeign(JSON.stringify(made.slice(0, hashedTextsMin - 1)))).toHaveLength(hashedTextsMin - 1)
})

test('texts are told apart as the runtime does, whatever their characters', () => {
  const random = (first: string) => Array.from({ length: 20_000 }, (_, i) => `${first}${i.toString(36)}`)
  for (const first of ['a', 'é', '一', '😀']) {
    const hashes = new TextHashes()
    expect(random(first).every((text) => hashes.add(text))).toBe(true)
  }
})
