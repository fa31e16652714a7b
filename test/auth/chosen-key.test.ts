import { expect, test } from 'bun:test'
import { chosenKeyProblem } from '../../src/auth/chosen-key.ts'
import { apiKeyCharsMax, apiKeyCharsMin } from '../../src/limits.ts'

test('a key that somebody chose has so many characters, of so many kinds', () => {
  const problem = (length: number, end = '') => chosenKeyProblem('k'.repeat(length - end.length) + end)
  expect([apiKeyCharsMin, apiKeyCharsMax].map((length) => problem(length))).toEqual([undefined, undefined])
  expect(problem(apiKeyCharsMin - 1)).toBe('must have at least 32 characters')
  expect(problem(apiKeyCharsMax + 1)).toBe('must have at most 256 characters')
  for (const end of ['.', '_', '~', '+', '/', '-', '=', '==', '0', 'Z']) expect(problem(40, end)).toBeUndefined()
  for (const end of [' ', '=a', 'é', '"', '\n'])
    expect(problem(40, end)).toBe('must be made of letters, digits and . _ ~ + / - only')
})
