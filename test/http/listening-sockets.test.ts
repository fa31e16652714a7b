import { expect, test } from 'bun:test'
import { openListeningSockets } from '../../src/http/listening-sockets.ts'
import { nextTurn } from '../../src/next-turn.ts'

test.if(process.platform === 'linux')('sockets that cannot be bounded say why, and are left alone', () => {
  const problems: string[] = []
  const sockets = openListeningSockets((why) => void problems.push(why), 'no-such-library.so')
  sockets.pause()
  sockets.end()
  expect(problems).toEqual([expect.stringContaining('no-such-library.so')])
})

test.if(process.platform === 'linux')('clients wait while nobody accepts them, and are answered then', async () => {
  await using server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response('here') })
  const problems: string[] = []
  const sockets = openListeningSockets((why) => void problems.push(why))
  const ask = async () => (await fetch(server.url, { headers: { connection: 'close' } })).text()
  expect(await ask()).toBe('here')
  for (let round = 0; round < 3; round += 1) {
    sockets.pause()
    sockets.pause()
    let isAnswered = false
    const asked = ask().then((text) => {
      isAnswered = true
      return text
    })
    for (let turn = 0; turn < 200; turn += 1) await nextTurn()
    expect(isAnswered).toBe(false)
    sockets.resume()
    expect(await asked).toBe('here')
  }
  // A server that ends while clients wait leaves nothing behind: its port is free.
  sockets.pause()
  sockets.end()
  sockets.pause()
  expect(await ask()).toBe('here')
  const { port } = server
  await server.stop(true)
  await using next = Bun.serve({ port: port ?? 0, hostname: '127.0.0.1', fetch: () => new Response('next') })
  expect(await (await fetch(next.url)).text()).toBe('next')
  expect(problems).toEqual([])
})
