import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { openPostgresStore } from '../../src/storage/postgres/store.ts'
import { isHere } from '../support/needs.ts'
import { createTestPlatform, type TestPlatform } from '../support/platform.ts'
import { addressOf, type PostgresCluster, startPostgres } from '../support/postgres.ts'
import { readCases, runCase, titleOf } from './cases.ts'
import clauses from './clauses.json' with { type: 'json' }

const cases = readCases()

for (const fastLane of [true, false]) {
  describe(`the application ${fastLane ? 'with' : 'without'} the fast lane`, () => {
    let platform: TestPlatform
    beforeAll(async () => {
      platform = await createTestPlatform({ fastLane })
    })
    for (const [file, ofFile] of Map.groupBy(cases, (one) => one.file)) {
      describe(file, () => {
        for (const one of ofFile) test(titleOf(one), () => runCase(one, platform.fetch))
      })
    }
  })
}

describe.skipIf(!isHere('PostgreSQL'))('the application on a database of its own (needs PostgreSQL)', () => {
  let cluster: PostgresCluster
  let platform: TestPlatform
  beforeAll(async () => {
    cluster = await startPostgres()
    platform = await createTestPlatform({
      store: await openPostgresStore({ address: addressOf(await cluster.newDatabase()), mayMigrate: true }),
    })
  })
  afterAll(async () => {
    await platform.store.close()
    await cluster.stop()
  })
  for (const one of cases) test(`${one.file}: ${titleOf(one)}`, () => runCase(one, platform.fetch))
})

describe('clauses', () => {
  test('every clause is cited, and every citation is a clause', () => {
    const cited = new Set(cases.map(({ clause }) => clause))
    expect([...cited].sort()).toEqual(Object.keys(clauses).sort())
  })
})
