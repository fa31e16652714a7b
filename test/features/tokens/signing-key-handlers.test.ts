/** Signing keys over HTTP, for operators (contract, 22.3). */

import { expect, test } from 'bun:test'
import { mintToken } from '../../api/cases.ts'
import { sampleApis } from '../../support/api.ts'
import { openMemoryStore } from '../../support/memory-store.ts'
import { createTestPlatform } from '../../support/platform.ts'
import { sampleKeys } from '../../support/sample.ts'

const hour = 3600 * 1000

test('the next key signs after a rotation, and tokens of the former one stay valid', async () => {
  const platform = await createTestPlatform()
  const api = sampleApis(platform.fetch)
  platform.now += hour
  const before = (await api.operator('GET /signing-keys')).body.keys
  const of = (state: string, keys = before) => keys.find((key: { state: string }) => key.state === state)
  const token = api.operator.as(await mintToken(platform.fetch, sampleKeys.ada))
  const { status, body } = await api.operator('POST /signing-keys/rotate')
  expect([status, of('active', body.keys).kid]).toEqual([200, of('next').kid])
  const retired = of('retired', body.keys)
  expect([retired.kid, retired.acceptedUntil]).toEqual([of('active').kid, expect.stringMatching(/^2026-/)])
  expect((await token('GET /me')).status).toBe(200)
  expect(platform.audited.filter(({ event }) => event === 'signing-key.rotated')).toMatchObject([
    { userId: 'operator', kid: of('next').kid },
  ])
  const again = await api.operator('POST /signing-keys/rotate')
  expect([again.status, again.body.error]).toEqual([409, 'conflict'])
  expect((await api.operator('GET /signing-keys')).body).toEqual(body)
  platform.now += 25 * hour
  expect((await api.operator('POST /signing-keys/rotate')).status).toBe(200)
})

test('the clock of the database says when the next key may sign, not the one of the machine', async () => {
  let clockOffsetMs = 0
  const health = async () => ({ bytes: 0, durability: 'local', clockOffsetMs }) as const
  const platform = await createTestPlatform({ store: { ...openMemoryStore(), health, isRemote: true } })
  const { operator } = sampleApis(platform.fetch)
  platform.now += hour
  const rotate = async () => (await operator('POST /signing-keys/rotate')).status
  expect(await rotate()).toBe(200)
  platform.now += 25 * hour
  clockOffsetMs = -25 * hour
  expect(await rotate()).toBe(409)
  clockOffsetMs = 0
  expect(await rotate()).toBe(200)
})

test('others may neither see nor rotate them', async () => {
  const platform = await createTestPlatform()
  const api = sampleApis(platform.fetch)
  const token = api.operator.as(await mintToken(platform.fetch, sampleKeys.operator))
  for (const one of [api.ada, token])
    for (const asked of ['GET /signing-keys', 'POST /signing-keys/rotate']) expect((await one(asked)).status).toBe(403)
})
