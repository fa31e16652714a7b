/** Texts of six letters, whose hashes agree in their last 18 bits. */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'

export const oneHash: readonly string[] = readFileSync(join(import.meta.dir, 'one-hash.txt'), 'utf8')
  .trim()
  .split('\n')
