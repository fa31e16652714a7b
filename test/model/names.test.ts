/** Names and ids at the bounds of their syntax. */

import { expect, test } from 'bun:test'
import { connectionIdCharsMax, slugCharsMax } from '../../src/limits.ts'
import {
  isConnectionId,
  isQualifiedName,
  isSlug,
  namespaceOf,
  OrganizationId,
  organizationIdCharsMax,
  QualifiedName,
  Slug,
  UserId,
  userIdCharsMax,
} from '../../src/model/names.ts'
import { validatorOf } from '../../src/schema/check.ts'

const a = (count: number) => 'a'.repeat(count)

test('a slug begins and ends with a letter or digit, and has so many characters', () => {
  const inShape = validatorOf(Slug).isValid
  for (const text of ['a', '0', 'ab', 'a.b', 'a_-.b', a(slugCharsMax)]) {
    expect({ text, is: [isSlug(text), inShape(text)] }).toEqual({ text, is: [true, true] })
  }
  for (const text of ['', '.', 'a.', '-a', '_a', 'a b', 'a/b', 'a\n', 'é', a(slugCharsMax + 1)]) {
    expect({ text, is: [isSlug(text), inShape(text)] }).toEqual({ text, is: [false, false] })
  }
})

test('a qualified name is one slug or two, and its namespace the first', () => {
  const inShape = validatorOf(QualifiedName).isValid
  for (const [text, namespace] of [
    ['a', 'a'],
    ['acme/notes', 'acme'],
    [`${a(slugCharsMax)}/${a(slugCharsMax)}`, a(slugCharsMax)],
  ] as const) {
    const is = [isQualifiedName(text), inShape(text), namespaceOf(text)]
    expect({ text, is }).toEqual({ text, is: [true, true, namespace] })
  }
  for (const text of ['', '/', 'a/', '/a', 'a/b/c', 'a//b', `a/${a(slugCharsMax + 1)}`]) {
    expect({ text, is: [isQualifiedName(text), inShape(text)] }).toEqual({ text, is: [false, false] })
  }
})

test('the id of a connection may begin with a mark, but for a point', () => {
  for (const text of ['a', '_', '-', 'a.', a(connectionIdCharsMax)]) expect(isConnectionId(text)).toBe(true)
  for (const text of ['', '.a', 'a b', 'a\n', a(connectionIdCharsMax + 1)]) expect(isConnectionId(text)).toBe(false)
})

test('the ids of organizations and users have their bounds', () => {
  const organization = validatorOf(OrganizationId).isValid
  const user = validatorOf(UserId).isValid
  expect([organization(a(organizationIdCharsMax)), organization(a(organizationIdCharsMax + 1))]).toEqual([true, false])
  expect([organization('a_'), organization('_a')]).toEqual([true, false])
  expect([user(a(userIdCharsMax)), user(a(userIdCharsMax + 1)), user('')]).toEqual([true, false, false])
  expect([user('änne b'), user('a\nb'), user('a\x7f')]).toEqual([true, false, false])
})
