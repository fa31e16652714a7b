import { expect, test } from 'bun:test'
import { isPlainUrl } from '../../src/model/connection.ts'
import { hasShortHost, isUrl } from '../../src/schema/url-host.ts'

/** Combining marks in the worst order: the runtime takes a time that is quadratic in their number. */
const marks = `a${'\u0344'.repeat(5000)}${'\u0323'.repeat(5000)}`
const encoded = encodeURIComponent(marks)

test('a URL with a host that nobody has is none, and costs nothing', () => {
  const urls = [`https://${marks}/`, `https://${encoded}/`, `HTTPS:\\\\${encoded}`, ` ht\ntps:${encoded}`]
  urls.push(`https:/${marks}:443/a`, `http://user@${marks}/`, `https://a.${encoded}?b`)
  const before = process.threadCpuUsage()
  for (const url of urls)
    expect({ url: url.slice(0, 20), is: [isUrl(url), isPlainUrl(url)] }).toEqual({
      url: url.slice(0, 20),
      is: [false, false],
    })
  const { user, system } = process.threadCpuUsage(before)
  // Each took a hundred milliseconds and more.
  expect((user + system) / 1000).toBeLessThan(100)
})

test('other URLs are as the runtime takes them, however long their paths', () => {
  const path = 'x'.repeat(2000)
  for (const url of [
    `https://example.com/${path}`,
    'https://bücher.example/a',
    `https://a.example?${path}`,
    'http://[::1]:80/',
  ])
    expect({ url: url.slice(0, 20), is: isUrl(url) }).toEqual({ url: url.slice(0, 20), is: true })
  for (const text of ['', 'a', '/a', 'https://', 'https://a b/'])
    expect({ text, is: isUrl(text) }).toEqual({ text, is: false })
  expect(hasShortHost(`mailto:${path}`)).toBe(false)
})
