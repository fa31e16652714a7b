/** Reloads of fixtures that signals and file events ask for. */

import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { createReload } from '../../src/cli/reload.ts'
import { CommandError } from '../../src/errors.ts'

const folders = [join(import.meta.dir, '../../fixtures')]

test('reloads that are asked for while one runs share the next, also where files have problems', async () => {
  let loads = 0
  let reopened = 0
  const loading = Promise.withResolvers<'unchanged'>()
  const logged: string[] = []
  const log = (event: string) => void logged.push(event)
  const audit = {
    reopen() {
      reopened += 1
    },
  }
  async function load() {
    loads += 1
    if (loads === 1) return loading.promise
    throw new CommandError('a file is invalid')
  }
  const reload = createReload([audit, undefined], load, { info: log, warn: log, error: log })
  const first = reload(folders)
  while (loads === 0) await Promise.resolve()
  const later = Array.from({ length: 1000 }, () => reload(folders))
  loading.resolve('unchanged')
  await Promise.all([first, ...later])
  expect([loads, reopened]).toEqual([2, 2])
  expect(logged).toEqual(['the fixtures have not changed', 'the fixtures were not reloaded'])
  await reload(folders)
  expect(loads).toBe(3)
})
