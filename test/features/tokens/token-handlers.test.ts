/** What is counted of tokens, and which keys are published when. */

import { expect, test } from 'bun:test'
import { unauthorized } from '../../../src/errors.ts'
import { tokenHandlers } from '../../../src/features/tokens/token-handlers.ts'
import { keyRetirementSeconds } from '../../../src/limits.ts'
import { createTestPlatform, signingKeyRecord, startOfTime } from '../../support/platform.ts'

test('a token that is refused is counted under its reason, whatever that is', async () => {
  const counted: string[] = []
  const failing = (thrown: Error) =>
    tokenHandlers({
      authorizer: { authenticate: () => Promise.reject(thrown) },
      observer: { minted: () => void counted.push('minted'), refused: (reason: string) => void counted.push(reason) },
    } as never).createToken(new Request('http://a/tokens', { method: 'POST' }))
  await expect(Promise.resolve(failing(unauthorized()))).rejects.toMatchObject({ code: 'unauthorized' })
  await expect(Promise.resolve(failing(new TypeError('a bug')))).rejects.toThrow(TypeError)
  expect(counted).toEqual(['unauthorized', 'internal'])
})

test('a retired key is published until the second in which its last token is over', async () => {
  const platform = await createTestPlatform()
  const since = startOfTime / 1000
  await platform.setSigningKeys([
    signingKeyRecord('next', 'next', since),
    signingKeyRecord('active', 'active', since),
    signingKeyRecord('retired', 'retired', since),
  ])
  const published = async () => {
    const response = await platform.fetch('/.well-known/jwks.json')
    expect(response.headers.get('cache-control')).toBe('public, max-age=300')
    return ((await response.json()) as { keys: unknown[] }).keys.length
  }
  platform.now = startOfTime + keyRetirementSeconds * 1000 - 1
  expect(await published()).toBe(3)
  platform.now += 1
  expect(await published()).toBe(2)
})
