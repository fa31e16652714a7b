import { expect, test } from 'bun:test'
import { longUrlCharsPerPassMax, refuseCostlyUrls, shortUrlChars } from '../../src/http/costly-urls.ts'
import { hostCharsMax } from '../../src/schema/url-host.ts'

/** Answers with 200 what is not refused. */
function guarded() {
  const ends: (() => void)[] = []
  let lookups = 0
  const answer = refuseCostlyUrls(
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
    async status(characters: number, headers: Record<string, string> = {}) {
      const url = 'http://localhost/'.padEnd(characters, 'a')
      return (await answer(new Request(url, { headers }))).status
    },
  }
}

const long = 64 * 1024
const many = longUrlCharsPerPassMax / long

test('a network has its part of a pass for long URLs, and others have theirs', async () => {
  const { status, endPass } = guarded()
  for (let i = 0; i <= many; i += 1) expect(await status(long)).toBe(200)
  expect(await status(long)).toBe(429)
  // Nobody knows how long it is before it was made.
  expect(await status(100)).toBe(429)
  const elsewhere = { 'x-test-address': 'elsewhere' }
  expect(await status(long, elsewhere)).toBe(200)
  expect(await status(100, elsewhere)).toBe(200)
  endPass()
  expect(await status(long)).toBe(200)
  expect(await status(100)).toBe(200)
})

test('short URLs count for nothing, and nobody asks where they come from', async () => {
  const { status, lookups } = guarded()
  for (let i = 0; i <= 2 * longUrlCharsPerPassMax; i += 100 * shortUrlChars)
    expect(await status(shortUrlChars)).toBe(200)
  expect(lookups()).toBe(0)
  await status(shortUrlChars + 1)
  expect(lookups()).toBe(1)
})

test('a long host is refused, whatever comes with it', async () => {
  const { status } = guarded()
  expect(await status(100, { host: 'a'.repeat(hostCharsMax) })).toBe(200)
  expect(await status(100, { host: 'a'.repeat(hostCharsMax + 1) })).toBe(403)
})

test('a connection on which a long body would follow is closed', async () => {
  const answer = refuseCostlyUrls(
    () => new Response(),
    () => 'here',
    () => {},
  )
  const host = 'a'.repeat(hostCharsMax + 1)
  const refused = async (headers: Record<string, string>) =>
    (await answer(new Request('http://localhost/', { headers: { host, ...headers } }))).headers.get('connection')
  expect(await refused({})).toBeNull()
  expect(await refused({ 'content-length': '100' })).toBeNull()
  expect(await refused({ 'content-length': '1000000' })).toBe('close')
  expect(await refused({ 'transfer-encoding': 'chunked' })).toBe('close')
})
