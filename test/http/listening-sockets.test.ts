import { expect, test } from 'bun:test'
import { boundListeningSockets } from '../../src/http/listening-sockets.ts'
import { until } from '../support/until.ts'

test.if(process.platform === 'linux')('sockets that cannot be bounded say why, and are left alone', () => {
  const problems: string[] = []
  boundListeningSockets((why) => void problems.push(why), 'no-such-library.so')()
  expect(problems).toEqual([expect.stringContaining('no-such-library.so')])
})

test.if(process.platform === 'linux')(
  'a server is reached while it is watched, and its port is free after that',
  async () => {
    const problems: string[] = []
    const sockets: ReturnType<typeof boundListeningSockets>[] = []
    let port = 0
    for (const name of ['first', 'second']) {
      const server = Bun.serve({ port, hostname: '127.0.0.1', fetch: () => new Response(name) })
      port = server.port ?? 0
      sockets.push(boundListeningSockets((why) => void problems.push(why)))
      let answered = 0
      const ask = async () => {
        const response = await fetch(server.url, { headers: { connection: 'close' } })
        expect(await response.text()).toBe(name)
        answered += 1
      }
      // So many at once that some always wait to be accepted.
      const all = Array.from({ length: 300 }, ask)
      await until(() => answered > 0)
      // The event loop does nothing for a while, and the thread looks at the connections that wait.
      Bun.sleepSync(100)
      await Promise.all(all)
      expect(answered).toBe(300)
      for (const one of sockets.splice(0)) {
        one()
        one()
      }
      await server.stop(true)
    }
    expect(problems).toEqual([])
  },
)
