/** Writes calls to a record whose file cannot grow past a limit, and moves it away. For `call-log.test.ts`. */

import { renameSync } from 'node:fs'
import type { CallRecord } from '../../src/model/recorded-call.ts'
import { CallLog } from '../../src/ops/call-log.ts'
import { clockOf } from '../support/clock.ts'

const [path = '', after] = process.argv.slice(2)
const log = new CallLog(path, { clock: clockOf(() => 0), onFailure: console.error })
const call: CallRecord = {
  ...{ requestId: 'r', userId: 'u', keyId: 'k', namespace: 'n', connectionId: 'c', tool: 't', via: 'mcp' },
  ...{ outcome: 'ok', ms: 0, bytesIn: 1, bytesOut: 1, args: 'a' },
}
const record = async (calls: number) =>
  (await Promise.allSettled(Array.from({ length: calls }, () => log.record(call)))).map(({ status }) => status)
const said = [await record(2), await record(6)]
if (after === 'moved') {
  renameSync(path, `${path}.1`)
  log.reopen()
  said.push(await record(1))
}
console.log(JSON.stringify(said))
