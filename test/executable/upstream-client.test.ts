/** `--upstream-client`, and what it means where the runtime's parser is gone. */

import { expect, test } from 'bun:test'
import { chmodSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { clientNames } from '../../src/upstream/client-names.ts'
import { run, type Server, sendTo, startServer, unlimited, workplace } from '../support/executable.ts'
import { sampleKeys } from '../support/sample.ts'

const allow = [...unlimited, '--allow-upstream', '127.0.0.1']

/** What a call through a connection to a server of this machine is answered. */
async function call(server: Server): Promise<unknown> {
  using upstream = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: async (request) => {
      const { id } = (await request.json()) as { id?: number }
      return Response.json({ jsonrpc: '2.0', id, result: { reached: true } })
    },
  })
  const headers = { authorization: `Bearer ${sampleKeys.ada}`, 'content-type': 'application/json' }
  const send = (path: string, method: string, body: object) =>
    sendTo(server)(path, { method, headers, body: JSON.stringify(body) })
  await send('/connect/ada/here', 'PUT', { mcpUrl: `http://127.0.0.1:${upstream.port}/mcp` })
  return (await send('/connect/ada/here/mcp', 'POST', { jsonrpc: '2.0', id: 1, method: 'ping' })).json()
}
const reached = { jsonrpc: '2.0', id: 1, result: { reached: true } }

for (const name of clientNames) {
  test(`the executable reaches servers with the client ${name}`, async () => {
    using place = workplace()
    await using server = await startServer(place, allow, { env: { POSTERN_UPSTREAM_CLIENT: name } })
    expect(await call(server)).toEqual(reached)
    expect(server.stderr()).not.toContain('warn')
  })
}

test('without the parser of the runtime, servers are reached all the same, and the log says how', async () => {
  using place = workplace()
  // From the source: a runtime without it would be another executable.
  const main = resolve(import.meta.dir, '../../src/main.ts')
  const program = join(place.folder, 'postern')
  const gone = join(place.folder, 'gone.ts')
  await Bun.write(gone, 'process.getBuiltinModule = () => undefined')
  await Bun.write(program, `#!/bin/sh\nexec '${process.execPath}' --preload '${gone}' '${main}' "$@"\n`)
  chmodSync(program, 0o700)
  await using server = await startServer(place, allow, { program })
  expect(await call(server)).toEqual(reached)
  const warnings = server.stderr().match(/^.*"warn".*$/gm) ?? []
  expect(warnings).toHaveLength(1)
  expect(warnings[0]).toContain('--upstream-client node')
})

test('a client that is none is refused, with the names there are', async () => {
  using place = workplace()
  const { code, stderr } = await run(place, ['serve', '--upstream-client', 'curl'])
  expect({ code, stderr }).toEqual({ code: 2, stderr: '--upstream-client curl: must be parser or node\n' })
})
