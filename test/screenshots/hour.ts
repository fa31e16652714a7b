/** The server's clock, and an hour of real calls at the sample company, made within seconds. */

import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { random } from '../support/random.ts'
import { type SampleUser, sampleKeys } from '../support/sample.ts'
import type { Workplace } from '../support/workplace.ts'

/** The time of every picture. */
export const pictured = new Date('2026-11-26T12:52:00Z')
/** Of what is called when, and of how long it takes in the pictures. Its last calls are of many kinds. */
export const seed = 221

/** Where libfaketime reads the time, which stands still until it is set again. */
export function stoppedClock({ folder }: Workplace) {
  const file = join(folder, 'clock')
  return {
    file,
    /** Replaces the file at once: the server reads it whenever it wants to know the time. */
    set(time: Date): void {
      writeFileSync(`${file}.new`, `${time.toISOString().slice(0, 19).replace('T', ' ')}\n`)
      renameSync(`${file}.new`, file)
    },
  }
}

interface SampleCall {
  readonly user: SampleUser
  readonly connection: string
  readonly tool: string
  readonly args: object
}

/** Mocks with recorded answers: what is generated instead may depend on the version of the generator. */
const answered: readonly SampleCall[] = [
  { user: 'ada', connection: 'northwind/weather-ada', tool: 'get_forecast', args: { location: 'Mount Hood, OR' } },
  { user: 'ada', connection: 'northwind/weather-ada', tool: 'list_alerts', args: { region: 'us-west' } },
  { user: 'ada', connection: 'northwind/inventory-us-west', tool: 'get_stock_level', args: { sku: 'NW-TNT-0420' } },
  { user: 'grace', connection: 'northwind/invoices-finance', tool: 'get_invoice', args: { number: 'INV-2026-00318' } },
  { user: 'grace', connection: 'northwind-support/tickets.support-emea', tool: 'issues.get', args: { id: 'SUP-4821' } },
  { user: 'linus', connection: 'northwind/trailhead-board', tool: 'list_alerts', args: { region: 'us-west' } },
]
const reservation = { connection: 'northwind/inventory-us-west', tool: 'reserve_stock' }
/** The sample's mock answers it with an error. */
const failing: SampleCall = { user: 'ada', ...reservation, args: { sku: 'NW-STV-0031', warehouse: 'reno' } }
/** Ada's token for tools that only read refuses it. */
const refused: SampleCall = { user: 'ada', ...reservation, args: { sku: 'NW-TNT-0420', warehouse: 'reno' } }

/** Makes the calls of the hour before `pictured`, one after the other, and leaves the clock there. */
export async function makeCalls(url: string, clock: ReturnType<typeof stoppedClock>): Promise<void> {
  const chance = random(seed)
  const post = async (path: string, credential: string, body: object) => {
    const headers = { authorization: `Bearer ${credential}`, 'content-type': 'application/json' }
    const response = await fetch(`${url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
    return (await response.json()) as { readonly token?: string }
  }
  clock.set(new Date(pictured.getTime() - 3600_000))
  const readOnly = [{ rpcReqMatch: { 'params.name': '^(?:get|list)_' }, ttl: '2h' }]
  const { token = '' } = await post('/tokens', sampleKeys.ada, { policy: readOnly })
  for (let minute = 59; minute >= 0; minute -= 1) {
    // Fewer and more of them by turns, as in any hour.
    const count = 3 + chance.int(3) + Math.round(2 + 2 * Math.sin(minute / 7))
    for (let made = 0; made < count; made += 1) {
      const age = minute * 60 + Math.round(((count - made - 0.5) * 60) / count)
      clock.set(new Date(pictured.getTime() - age * 1000))
      const isRefused = chance.int(12) === 0
      const call = isRefused ? refused : chance.int(30) === 0 ? failing : chance.pick(answered)
      const credential = isRefused ? token : sampleKeys[call.user]
      await post(`/connect/${call.connection}/.tools/${call.tool}`, credential, call.args)
    }
  }
  clock.set(pictured)
}
