/** Grants, and the tokens that clients have by them. */

import { expect, test } from 'bun:test'
import { createDirectory } from '../../src/auth/directory.ts'
import { type Grant, grantEntry, isGrantedForAnother } from '../../src/auth/grants.ts'
import { directoryVersionKey } from '../../src/storage/keys.ts'
import { newVersion } from '../../src/storage/versions.ts'
import { openMemoryStore } from '../support/memory-store.ts'

test('a token is for what its grant was for, whatever time a later thing of that name says it was made', async () => {
  const hour = 3600
  const madeAt = '2026-01-01T00:00:00.000Z'
  const grant = { grantId: 'grant_one', madeAt, expires: Date.parse(madeAt) / 1000 + 24 * hour } as Grant
  const store = openMemoryStore()
  await store.commit({ puts: [grantEntry(grant), newVersion(directoryVersionKey)] })
  const directory = await createDirectory(store).current()
  const tokenOf = (grantId: string) =>
    ({ aud: 'a', iss: 'b', iat: Date.parse(madeAt) / 1000 + hour, par: [grantId] }) as never
  // Twice: the directory keeps it.
  for (let times = 0; times < 2; times += 1) {
    expect(await isGrantedForAnother(directory, tokenOf('grant_one'), madeAt)).toBe(false)
    for (const other of ['2025-06-01T00:00:00.000Z', '2026-01-01T00:00:01.000Z', '2026-01-02T00:00:00.000Z'])
      expect({ other, is: await isGrantedForAnother(directory, tokenOf('grant_one'), other) }).toEqual({
        other,
        is: true,
      })
    expect(await isGrantedForAnother(directory, tokenOf('grant_gone'), madeAt)).toBe(true)
  }
})
