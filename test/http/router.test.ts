import { expect, spyOn, test } from 'bun:test'
import { createTestPlatform } from '../support/platform.ts'
import { sampleKeys } from '../support/sample.ts'

test('the framework parses the headers and the query of no request, but of those that mint', async () => {
  const platform = await createTestPlatform()
  const parsed = spyOn(Headers.prototype, 'toJSON')
  const authorization = `Bearer ${sampleKeys.ada}`
  const asked = async (path: string, init: RequestInit = {}) => {
    parsed.mockClear()
    const { status } = await platform.fetch(path, { ...init, headers: { authorization, ...init.headers } })
    return [status, parsed.mock.calls.length]
  }
  const body = JSON.stringify({ policy: [{ ttl: '10m' }] })
  const mint = { method: 'POST', body, headers: { 'content-type': 'application/json' } }
  expect(await asked('/health?"=1')).toEqual([200, 0])
  expect(await asked('/me')).toEqual([200, 0])
  expect(await asked('/nowhere?"=1')).toEqual([404, 0])
  expect(await asked('/tokens?"=1', mint)).toEqual([400, 0])
  expect(await asked('/tokens?access_token=x', mint)).toEqual([400, 0])
  expect(await asked('/tokens', mint)).toEqual([200, 1])
  parsed.mockRestore()
})
