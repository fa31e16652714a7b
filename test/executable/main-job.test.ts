/** The main job, from fixtures to a list, and what outlives the process. */

import { describe, expect, test } from 'bun:test'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { mintToken } from '../api/cases.ts'
import { get, ids, run, samePort, sendTo, startServer, workplace } from '../support/executable.ts'
import { sampleKeys } from '../support/sample.ts'
import { sharedServer } from '../support/shared-server.ts'

describe('the main job', () => {
  const shared = sharedServer()

  test('load fixtures, mint a scoped token, list what it may see, read a server', async () => {
    const token = await mintToken(sendTo(shared.server), sampleKeys.ada, {
      policy: [{ namespaces: 'northwind', metadata: { userId: 'ada' }, ttl: '30m' }],
    })
    expect(await ids(await get(shared.server, '/connect/northwind', token))).toEqual([
      'calendar-ada',
      'crm-ada',
      'weather-ada',
    ])
    const detail = (await (await get(shared.server, '/servers/northwind%2Fweather', sampleKeys.ada)).json()) as {
      tools: unknown[]
    }
    expect(detail.tools.length).toBeGreaterThan(1)
    expect((await get(shared.server, '/connect/lumen', token)).status).toBe(404)
  })

  test('the reference is in the executable', async () => {
    const document = (await (await fetch(`${shared.server.url}/openapi.json`)).json()) as { servers: { url: string }[] }
    expect(document.servers).toEqual([{ url: shared.server.url }])
    expect(await (await fetch(`${shared.server.url}/docs`)).text()).toMatch(/^<!doctype html>/)
  })

  test('the company of the documentation takes the place of the sample, and every command opens the folder after it', async () => {
    using place = workplace()
    await (await startServer(place)).kill('SIGTERM')
    const own = join(place.folder, 'platform')
    mkdirSync(own)
    const document = readFileSync(join(import.meta.dir, '../../docs/fixtures.md'), 'utf8')
    const company = /`platform\/company\.json`:\s+```json\n(.*?)```/s.exec(document)?.[1] ?? ''
    writeFileSync(join(own, 'company.json'), company)
    await using server = await startServer(place, ['--fixtures', own])
    const { code, stdout, stderr } = await run(place, ['keys', 'create', '--user', 'you', '--data', place.data])
    expect({ code, stderr }).toEqual({ code: 0, stderr: expect.not.stringContaining('damaged') })
    expect((await get(server, '/connect/acme', stdout.trim())).status).toBe(200)
    expect((await run(place, ['verify', '--data', place.data])).code).toBe(0)
    await server.kill('SIGTERM')
    await using again = await startServer(place, ['--fixtures', own])
    expect((await get(again, '/connect/acme', stdout.trim())).status).toBe(200)
  })

  test('tokens, cursors, keys and records survive a restart, and a kill', async () => {
    using place = workplace()
    let server = await startServer(place)
    const token = await mintToken(sendTo(server), sampleKeys.ada)
    const page = (await (await get(server, '/connect/northwind?limit=5', token)).json()) as { nextCursor: string }
    const next = `/connect/northwind?limit=2&cursor=${page.nextCursor}`
    const expected = await ids(await get(server, next, token))
    const { stdout: key } = await run(place, ['keys', 'create', '--user', 'ada', '--data', place.data])
    for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
      await server.kill(signal)
      server = await startServer(place, samePort(server))
      expect(await ids(await get(server, next, token))).toEqual(expected)
      expect((await get(server, '/connect/ada', key.trim())).status).toBe(200)
    }
    await server.kill('SIGKILL')
  })
})
