/** How the server starts and stops. */

import { describe, expect, test } from 'bun:test'
import { mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { mintToken } from '../api/cases.ts'
import { apiOf } from '../support/api.ts'
import { get, type Server, samePort, sampleFolder, sendTo, startServer, workplace } from '../support/executable.ts'
import { sampleKeys } from '../support/sample.ts'
import { until } from '../support/until.ts'

describe('starting', () => {
  test('the first start prints one operator key, which works; later starts print none', async () => {
    using place = workplace()
    const first = await startServer(place)
    const [key] = /pst_[A-Za-z0-9_-]{43}/.exec(first.stdout()) ?? []
    expect((await get(first, '/connect/ada', key ?? '')).status).toBe(200)
    expect(await first.kill('SIGTERM')).toBe(0)
    await using second = await startServer(place, [])
    expect(second.stdout()).toBe(`postern listening on ${second.url}\n`)
    expect((await get(second, '/connect/ada', key ?? '')).status).toBe(200)
  })

  test('POSTERN_API_KEY supplies the operator key', async () => {
    using place = workplace()
    const env = { POSTERN_API_KEY: 'an-operator-key-of-my-own-choice-01' }
    await using server = await startServer(place, undefined, { env })
    expect(server.stdout()).toStartWith(`postern listening on ${server.url}\n`)
    expect((await get(server, '/connect/lumen', env.POSTERN_API_KEY)).status).toBe(200)
  })

  test('flags may come from the environment', async () => {
    using place = workplace()
    const env = { POSTERN_FIXTURES: sampleFolder, POSTERN_BASE_URL: 'https://mcp.example.com/' }
    await using server = await startServer(place, [], { env })
    const token = await mintToken(sendTo(server), sampleKeys.ada)
    const claims = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
    expect(claims).toMatchObject({ iss: 'https://mcp.example.com', aud: 'https://mcp.example.com' })
  })

  test('what it writes is for its owner only', async () => {
    using place = workplace()
    await using _server = await startServer(place)
    const files = readdirSync(place.data, { recursive: true, withFileTypes: true })
    expect(files.length).toBeGreaterThan(4)
    for (const file of files) {
      const mode = statSync(join(file.parentPath, file.name)).mode & 0o777
      expect({ name: file.name, mode }).toEqual({ name: file.name, mode: file.isDirectory() ? 0o700 : 0o600 })
    }
    expect(statSync(place.data).mode & 0o777).toBe(0o700)
  })

  test('.env, bunfig.toml and other files of the working directory decide nothing', async () => {
    using place = workplace()
    writeFileSync(join(place.folder, 'evil.ts'), 'console.log("EVIL")')
    writeFileSync(join(place.folder, 'bunfig.toml'), 'preload = ["./evil.ts"]\n')
    writeFileSync(join(place.folder, '.env'), 'POSTERN_API_KEY=short\nPOSTERN_PORT=1\n')
    writeFileSync(join(place.folder, 'package.json'), '{"name":"evil","imports":{"#x":"./evil.ts"}}')
    writeFileSync(join(place.folder, 'tsconfig.json'), '{"compilerOptions":{"paths":{"*":["./evil.ts"]}}}')
    await using server = await startServer(place)
    expect(server.stdout()).not.toContain('EVIL')
    expect((await fetch(`${server.url}/health`)).status).toBe(200)
  })

  test('the same fixtures are not loaded again', async () => {
    using place = workplace()
    const first = await startServer(place)
    expect(first.stderr()).toContain('fixtures loaded')
    await first.kill('SIGTERM')
    await using second = await startServer(place, ['--fixtures', sampleFolder, ...samePort(first)])
    expect(second.stderr()).not.toContain('fixtures loaded')
  })

  test("fixtures of somebody else's namespace are refused, and it goes on with what it has", async () => {
    using place = workplace()
    const first = await startServer(place)
    const api = apiOf(sendTo(first), sampleKeys.ada)
    expect((await api('PUT /namespaces/lab-one')).status).toBe(201)
    await first.kill('SIGTERM')
    const mine = join(place.folder, 'mine')
    mkdirSync(mine)
    writeFileSync(join(mine, 'mine.json'), '{"namespaces": [{"namespace": "lab-one", "userId": "grace"}]}')
    await using second = await startServer(place, ['--fixtures', sampleFolder, '--fixtures', mine, ...samePort(first)])
    expect(second.stderr()).toContain('fixtures not loaded')
    expect(second.stderr()).toContain('namespaces[0]: the namespace lab-one was made over HTTP and belongs to user ada')
    expect((await api('GET /namespaces/lab-one')).status).toBe(200)
    expect((await api('GET /connect/northwind')).status).toBe(200)
  })
})

describe('stopping', () => {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    test(`${signal} finishes the request in flight and exits 0`, async () => {
      using place = workplace()
      await using server = await startServer(place)
      const slow = await slowRequest(server)
      const exit = server.kill(signal)
      // The port is closed when no new connection is taken; the request is answered all the same.
      await until(async () => !(await takesConnections(server)))
      slow.finish()
      expect(await slow.answer).toContain('HTTP/1.1 200')
      expect(await exit).toBe(0)
    })
  }

  test('a second signal exits at once', async () => {
    using place = workplace()
    await using server = await startServer(place)
    const slow = await slowRequest(server)
    process.kill(server.pid, 'SIGTERM')
    await until(async () => !(await takesConnections(server)))
    expect(await server.kill('SIGTERM')).toBe(143)
    await slow.answer
  })

  test('idle connections do not hold it up', async () => {
    using place = workplace()
    await using server = await startServer(place)
    // fetch keeps its connection open.
    await fetch(`${server.url}/health`)
    expect(await server.kill('SIGTERM')).toBe(0)
  })
})

/** A request whose body is not sent to its end before `finish()`. */
async function slowRequest(server: Server): Promise<{ finish: () => void; answer: Promise<string> }> {
  const { promise: answer, resolve } = Promise.withResolvers<string>()
  let received = ''
  const socket = connect(Number(new URL(server.url).port), '127.0.0.1')
  socket.on('data', (chunk) => {
    received += chunk.toString('latin1')
  })
  socket.on('error', () => resolve(received))
  socket.on('close', () => resolve(received))
  const head = `POST /tokens HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${sampleKeys.ada}\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\nExpect: 100-continue\r\n\r\n`
  socket.write(head)
  // The interim answer says that the request has been read and is in flight.
  await until(async () => received.startsWith('HTTP/1.1 100'))
  return { finish: () => socket.write('{}'), answer }
}

async function takesConnections(server: Server): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const socket = connect(Number(new URL(server.url).port), '127.0.0.1')
  socket.on('connect', () => {
    socket.destroy()
    resolve(true)
  })
  socket.on('error', () => resolve(false))
  return promise
}
