import { expect, test } from 'bun:test'
import { requestsPerPassMax } from '../../src/fairness/passes.ts'
import {
  headMsPerPassMax,
  pathCharsMax,
  refuseCostlyHeads,
  requestUrlCharsMax,
  withinPasses,
} from '../../src/http/costly-heads.ts'
import { hostCharsMax } from '../../src/schema/url-host.ts'

/** Answers with 200 what is not refused. */
function guarded() {
  const ends: (() => void)[] = []
  let lookups = 0
  const answer = refuseCostlyHeads(
    () => new Response(),
    (request) => {
      lookups += 1
      return request.headers.get('x-test-address') ?? 'here'
    },
    (run) => void ends.push(run),
  )
  return {
    lookups: () => lookups,
    endPass: () => {
      for (const end of ends.splice(0)) end()
    },
    async status(path: string, headers: Record<string, string> = {}) {
      return (await answer(new Request(`http://localhost${path}`, { headers }))).status
    },
  }
}

const elsewhere = { 'x-test-address': 'elsewhere' }
const manyHeaders = Object.fromEntries(Array.from({ length: 190 }, (_, at) => [`x-${at}`, '1']))

test.each([
  ['URLs', `/health?${'a'.repeat(16_000)}`, {}],
  ['lists of headers', '/health', manyHeaders],
])('a network has its part of a pass for long %s, and others have theirs', async (_, path, headers) => {
  const { status, endPass } = guarded()
  let answered = 0
  while ((await status(path, headers)) === 200) answered += 1
  // Each takes a tenth of a millisecond, or a twentieth.
  expect(answered).toBeGreaterThan(5 * headMsPerPassMax)
  expect(answered).toBeLessThan(50 * headMsPerPassMax)
  // Nobody knows how long it is before it was read.
  expect(await status('/health')).toBe(429)
  expect(await status(path, { ...headers, ...elsewhere })).toBe(200)
  expect(await status('/health', elsewhere)).toBe(200)
  endPass()
  expect(await status(path, headers)).toBe(200)
  expect(await status('/health')).toBe(200)
})

test('ordinary heads count for nothing, and nobody asks where they come from', async () => {
  const { status, lookups } = guarded()
  const headers = Object.fromEntries(Object.entries(manyHeaders).slice(0, 50))
  for (let i = 0; i < 10_000; i += 1) await status(`/${'a'.repeat(1000)}?${'b'.repeat(1000)}`, headers)
  expect(lookups()).toBe(0)
})

test('a host, a path and a URL that nobody needs are refused', async () => {
  const { status } = guarded()
  expect(await status('/me', { host: 'a'.repeat(hostCharsMax) })).toBe(200)
  expect(await status('/me', { host: 'a'.repeat(hostCharsMax + 1) })).toBe(403)
  const longest = '/'.padEnd(pathCharsMax, 'a')
  expect(await status(longest)).toBe(200)
  expect(await status(`${longest}?${'b'.repeat(pathCharsMax)}`)).toBe(200)
  expect(await status(`${longest}a`)).toBe(404)
  const origin = 'http://localhost'.length
  const query = '/?'.padEnd(requestUrlCharsMax - origin, 'c')
  expect(await status(query)).toBe(200)
  expect(await status(`${query}c`)).toBe(400)
})

test('a request with a long host never waits: its URL would be made', () => {
  const sockets = { addressOf: () => 'here', connectionOf: () => 'one' }
  const answer = withinPasses(() => new Response(), sockets)
  const asked = (host: string) => answer(new Request('http://localhost/me', { headers: { host } }))
  for (let i = 0; i < requestsPerPassMax; i += 1) expect(asked('localhost')).toBeInstanceOf(Response)
  expect(asked('localhost')).toBeInstanceOf(Promise)
  const refused = asked('a'.repeat(hostCharsMax + 1))
  expect(refused instanceof Response && [refused.status, refused.headers.get('connection')]).toEqual([429, null])
  // Sent ahead behind it, as thousands may be.
  const next = asked('a'.repeat(hostCharsMax + 1))
  expect(next instanceof Response && [next.status, next.headers.get('connection')]).toEqual([429, 'close'])
})
