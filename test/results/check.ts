/**
 * The end of `make test`: `bun test/results/check.ts FILE…`, of results that were just written. Says what was skipped
 * and why, and fails where a threat (`threats.json`) names a test that did not run and pass.
 */

import { readFileSync } from 'node:fs'
import threats from '../threats.json' with { type: 'json' }
import { readResults } from './junit.ts'
import { verdictOf } from './verdict.ts'

const results = process.argv.slice(2).flatMap((file) => readResults(readFileSync(file, 'utf8')))
const { wrong, skipped, notLookedAt } = verdictOf(threats, results)
const told = (count: number, what: string, lines: readonly string[]) =>
  console.log([`${count} ${what}`, ...lines.map((line) => `  ${line}`)].join('\n'))
told(skipped.length, 'skipped', skipped)
if (notLookedAt.length > 0) told(notLookedAt.length, 'named by a threat and not looked at on this machine', notLookedAt)
if (wrong.length > 0) told(wrong.length, 'wrong', wrong)
else
  console.log(
    `${results.length - skipped.length} tests ran and passed, and with them all that a threat names${notLookedAt.length > 0 ? ', but for those' : ''}`,
  )
process.exit(wrong.length > 0 ? 1 : 0)
