/** Paths as they came, where the runtime has resolved their backslashes and dots already. */

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { namesInPath } from '../../src/http/path.ts'
import { rawPathRoutes, withRawPath } from '../../src/http/raw-path.ts'
import { HttpSocket } from '../support/http-socket.ts'

let server: Bun.Server<undefined>
beforeAll(() => {
  const fetch = withRawPath(async (request: Request) => {
    const { method, headers } = request
    const said = { path: new URL(request.url).pathname, segments: namesInPath(request.url), method }
    return new Response(
      JSON.stringify({ ...said, credential: headers.get('authorization'), body: await request.text() }),
    )
  })
  server = Bun.serve({ port: 0, hostname: '127.0.0.1', routes: rawPathRoutes(fetch), fetch })
})
afterAll(() => server.stop(true))

/** What arrives of a request that is written as it is given. */
async function arrived(path: string, method = 'GET', body = '') {
  const socket = new HttpSocket(server.port ?? 0)
  const head = `${method} ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer k\r\nContent-Length: ${body.length}\r\n\r\n`
  const answer = await socket.send(Buffer.from(head + body))
  socket.close()
  return JSON.parse(answer?.body ?? '{}')
}

test('a path without a backslash arrives as it is', async () => {
  for (const path of ['/connect/a/b', '/connect/a%20b', '/servers/a%2Fb', '/connect/a/b/.tools/x/y', '/health']) {
    expect((await arrived(path)).path).toBe(path)
  }
})

test('a backslash is a part of a name, and takes nobody to another', async () => {
  for (const path of ['/connect/a\\..\\b', '/connect/a%5C..%5Cb']) {
    expect((await arrived(path)).segments).toEqual(['a\\..\\b'])
  }
  expect((await arrived('/connect/a/x\\y')).segments).toEqual(['a', 'x\\y'])
  expect((await arrived('/connect/a\\/b/.tools/c/d')).segments).toEqual(['a\\', 'b', '.tools', 'c', 'd'])
})

test('beside a backslash, parts that are dots alone stand for no name either', async () => {
  for (const dots of ['%2e', '%2e%2e']) {
    const { segments } = await arrived(`/connect/a\\b/${dots}`)
    expect(segments).toEqual(['a\\b', '\\'])
  }
})

test('a part that is too long for a name stands for none, and is not written out', async () => {
  const { segments } = await arrived(`/connect/${'\u00ff'.repeat(1001)}/a\\b`)
  expect(segments).toEqual(['\\', 'a\\b'])
  const long = await arrived(`/connect/${'\\'.repeat(129)}/${'\\'.repeat(128)}`)
  expect(long.segments).toEqual(['\\', '\\'.repeat(128)])
})

test('what else the request holds goes on', async () => {
  expect(await arrived('/connect/a\\b', 'POST', '{"x":1}')).toMatchObject({
    segments: ['a\\b'],
    method: 'POST',
    credential: 'Bearer k',
    body: '{"x":1}',
  })
})
