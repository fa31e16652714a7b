/** Names that there are not and names that the caller may not see, asked of the executable. */

import { mintToken } from '../api/cases.ts'
import { sendTo, startServer, workplace } from '../support/executable.ts'
import { random } from '../support/random.ts'
import { sampleKeys } from '../support/sample.ts'
import { collector, type Trial } from './trial.ts'

export const oneAnswer: Trial = {
  name: 'one-answer',
  promise:
    'An operation answers with the same bytes for a name that nobody has and for a name that the caller may not see',
  times: { full: 10_000, short: 2000 },

  async run(times, seed) {
    const { broken, expect } = collector()
    const chance = random(seed)
    using place = workplace()
    await using server = await startServer(place)
    const send = sendTo(server)
    // Of each operation, who asks and what of it they may not see. Every caller reads servers but one held to a namespace.
    const elsewhere = await mintToken(send, sampleKeys.ada, { policy: [{ namespaces: 'nowhere' }] })
    const lumen = await mintToken(send, sampleKeys.priya, { organizationId: 'org_lumen' })
    const operations = [
      { credentials: [sampleKeys.jonas, lumen], invisible: ['/connect/northwind', '/connect/ada'], root: '/connect/' },
      {
        credentials: [elsewhere],
        invisible: ['/servers/northwind', '/servers/northwind%2Fcalendar'],
        root: '/servers/',
      },
    ]
    const answers = new Map<string, string>()
    for (let i = 0; i < times; i += 1) {
      const { credentials, invisible, root } = chance.pick(operations)
      const name = `${chance.pick(['x', 'northwind', 'lumen', 'zz'])}-${chance.int(1e9).toString(36)}`
      const path = chance.chance(0.3) ? chance.pick(invisible) : root + name
      const response = await send(path, { headers: { authorization: `Bearer ${chance.pick(credentials)}` } })
      // The two that are of the moment, and tell requests apart only.
      for (const header of ['x-request-id', 'date']) response.headers.delete(header)
      answers.set(`${root} ${response.status} ${JSON.stringify([...response.headers])} ${await response.text()}`, path)
    }
    expect(answers.size <= 2, () => JSON.stringify([...answers]))
    const figure = `${times} names in two operations: ${answers.size} different answers, one for each operation`
    return { figure, broken, seen: { answers: [answers.size, 2] } }
  },
}
