/** Names on the command line as segments of a path. */

import { describe, expect, test } from 'bun:test'
import { at } from '../../src/cli/api-client.ts'

describe('a name in a path', () => {
  test('stays one segment', () => {
    for (const name of ['acme/weather', '%2e%2e', 'a/..', '../b']) {
      const { pathname } = new URL(`http://localhost/organizations/acme/members/${at(name)}`)
      expect(pathname.split('/')).toHaveLength(5)
      expect(decodeURIComponent(pathname.split('/')[4] ?? '')).toBe(name)
    }
  })

  test('is refused where a URL would take it for another path', () => {
    for (const name of ['', '.', '..']) expect(() => at(name)).toThrow('is no name')
  })
})
