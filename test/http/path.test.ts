/** Names in paths, as they came. */

import { expect, test } from 'bun:test'
import { nameAfter, namesInPath, pathOf } from '../../src/http/path.ts'

test('a path is what stands between the host and the query', () => {
  const rows: [url: string, path: string][] = [
    ['http://a/', '/'],
    ['http://a/x', '/x'],
    ['http://a.example.com:80/x/y?z=/1?2', '/x/y'],
    ['http://a/?', '/'],
    ['http://a//x//', '//x//'],
    ['/x/y', '/x/y'],
    ['/x/y?z', '/x/y'],
    ['/?z', '/'],
  ]
  for (const [url, path] of rows) expect({ url, path: pathOf(url) }).toEqual({ url, path })
})

test('segments are decoded once, after the first', () => {
  const rows: [path: string, segments: string[]][] = [
    ['/connect', []],
    ['/connect/', ['']],
    ['/connect/a/b', ['a', 'b']],
    ['/connect/a%2Fb/c', ['a/b', 'c']],
    ['/connect/%2561/%C3%A9', ['%61', 'é']],
  ]
  for (const [path, segments] of rows)
    expect({ path, segments: namesInPath(`http://a${path}?x=%zz`) }).toEqual({ path, segments })
  for (const path of ['/connect/%', '/connect/a/%zz', '/connect/%C3'])
    expect(() => namesInPath(`http://a${path}`)).toThrow('not found')
})

test('a name is the rest of the path, decoded once, or none', () => {
  const rows: [path: string, name: string | undefined][] = [
    ['/servers/a', 'a'],
    ['/servers/a/b?c', 'a/b'],
    ['/servers/a%2Fb', 'a/b'],
    ['/servers/%2561', '%61'],
    ['/servers/', ''],
    ['/servers/%zz', undefined],
    ['/server/a', undefined],
    ['/x/servers/a', undefined],
  ]
  for (const [path, name] of rows)
    expect({ path, name: nameAfter('/servers/', `http://a${path}`) }).toEqual({ path, name })
})
