/** An empty directory for a test, gone when the test is over. */

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface Workplace extends Disposable {
  /** An empty directory; the data folder is made in it. */
  readonly folder: string
  readonly data: string
}

export function workplace(): Workplace {
  const folder = mkdtempSync(join(tmpdir(), 'postern-test-'))
  return {
    folder,
    data: join(folder, 'data'),
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  }
}

/** A new folder in the workplace with these fixtures in one file, for `--fixtures`. */
export function fixturesIn({ folder }: Workplace, fixtures: object): string {
  const path = join(folder, 'fixtures')
  mkdirSync(path)
  writeFileSync(join(path, 'all.json'), JSON.stringify(fixtures))
  return path
}
