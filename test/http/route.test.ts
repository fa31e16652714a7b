/** Which operation a path has. */

import { expect, test } from 'bun:test'
import { allowedMethods, errorsOf, operationOf } from '../../src/http/route.ts'

test('a path answers to its operations, and to those of no other', () => {
  const rows: [path: string, allow: string | undefined][] = [
    ['/tokens', 'POST'],
    ['/tokens/', 'POST'],
    ['/connect/a', 'GET, POST'],
    ['/connect/a/b', 'GET, PUT, DELETE'],
    ['/connect/a/b/mcp', 'POST'],
    ['/connect/a/b/.tools', 'GET'],
    ['/connect/a/b/.tools/x', 'GET, POST'],
    ['/connect/a/b/.tools/x/y/z', 'GET, POST'],
    ['/servers/a/b', 'GET, PUT, PATCH, DELETE'],
    ['/servers/a', 'GET, PUT, PATCH, DELETE'],
    ['/servers', 'GET'],
    ['/servers/a/b/.introspect', 'POST, GET, PUT, PATCH, DELETE'],
    ['/servers/a%2Fb/releases', 'PUT, GET, PATCH, DELETE'],
    ['/organizations/a/members/b', 'PUT, DELETE'],
    ['/', 'GET'],
    ...['/connect', '/connect/', '/connect/a/b/c', '/connect/a/b/xtools', '/tokens/a', '/xtokens', '/me/x'].map(
      (path): [string, undefined] => [path, undefined],
    ),
  ]
  for (const [path, allow] of rows) expect({ path, allow: allowedMethods(path) }).toEqual({ path, allow })
})

test('an operation is a path and its method', () => {
  expect(operationOf('GET', '/connect/a')).toBe('listConnections')
  expect(operationOf('POST', '/connect/a')).toBe('createConnection')
  expect(operationOf('PUT', '/connect/a')).toBeUndefined()
  expect(operationOf('GET', '/nothing')).toBeUndefined()
})

test('errors about a path have one shape, whatever the method', () => {
  expect(['/connect/a/b/mcp', '/servers/a', '/connect/a', '/nothing'].map(errorsOf)).toEqual([
    'rpc',
    'server',
    undefined,
    undefined,
  ])
})
