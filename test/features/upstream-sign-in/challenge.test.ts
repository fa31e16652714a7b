/** Challenges of several schemes, as servers and proxies write them. */

import { expect, test } from 'bun:test'
import { bearerIn, challengeCharsMax, readChallenge } from '../../../src/features/upstream-sign-in/challenge.ts'

const rows: [header: string, bearer: string][] = [
  ['', ''],
  ['Basic realm="x"', ''],
  ['Bearer', 'Bearer'],
  ['bearer scope="a b"', 'bearer scope="a b"'],
  ['Basic realm="x", Bearer scope="a", error="b"', 'Bearer scope="a", error="b"'],
  ['Bearer scope="a", Basic realm="x"', 'Bearer scope="a"'],
  ['Basic realm="Bearer scope=\\"no\\", x", Bearer scope="a"', 'Bearer scope="a"'],
  ['Negotiate, Bearer scope="a", NTLM', 'Bearer scope="a"'],
  ['DPoP algs="ES256", Bearer scope="a,b"', 'Bearer scope="a,b"'],
]
for (const [header, bearer] of rows) test(header || 'none', () => expect(bearerIn(header)).toBe(bearer))

test('its parameters are read', async () => {
  const header = 'Basic realm="x", Bearer resource_metadata="https://a.example/m", scope="a b", error="invalid_token"'
  expect(await readChallenge(header)).toEqual({
    metadataUrl: 'https://a.example/m',
    scope: 'a b',
    error: 'invalid_token',
  })
})

test('a very long one asks for nothing', async () => {
  const header = (characters: number) =>
    `${'Bearer error="insufficient_scope",scope="a"'.padEnd(characters - 2, ',a')},b`
  expect(await readChallenge(header(challengeCharsMax))).toMatchObject({ scope: 'a', error: 'insufficient_scope' })
  expect(await readChallenge(header(challengeCharsMax + 1))).toEqual({
    metadataUrl: undefined,
    scope: undefined,
    error: undefined,
  })
})
