/** The cases of the API against the executable: what a minifier or a bundler breaks shows only here. */

import { test } from 'bun:test'
import { readCases, runCase, titleOf } from '../api/cases.ts'
import { sendTo } from '../support/executable.ts'
import { sharedServer } from '../support/shared-server.ts'

const shared = sharedServer()
for (const one of readCases()) test(titleOf(one), () => runCase(one, sendTo(shared.server)))
