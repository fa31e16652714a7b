import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { type Server, startServer, workplace } from '../support/executable.ts'
import { createTestPlatform, type TestPlatform } from '../support/platform.ts'
import { readCases, runCase, titleOf } from './cases.ts'
import clauses from './clauses.json' with { type: 'json' }

const cases = readCases()

for (const fastLane of [true, false]) {
  describe(`the application ${fastLane ? 'with' : 'without'} the fast lane`, () => {
    let platform: TestPlatform
    beforeAll(async () => {
      platform = await createTestPlatform({ fastLane })
    })
    for (const one of cases) test(titleOf(one), () => runCase(one, platform.fetch))
  })
}

// What a minifier or a bundler breaks shows only here.
describe('the executable', () => {
  const place = workplace()
  let server: Server
  beforeAll(async () => {
    server = await startServer(place)
  })
  afterAll(async () => {
    await server.kill('SIGTERM')
    place[Symbol.dispose]()
  })
  for (const one of cases) test(titleOf(one), () => runCase(one, (path, init) => fetch(`${server.url}${path}`, init)))
})

describe('clauses', () => {
  test('every clause is cited, and every citation is a clause', () => {
    const cited = new Set(cases.map(({ clause }) => clause))
    expect([...cited].sort()).toEqual(Object.keys(clauses).sort())
  })
})
