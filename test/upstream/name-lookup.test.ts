import { expect, jest, test } from 'bun:test'
import { dnsCacheTtlMs, pendingLookupsMax } from '../../src/limits.ts'
import { createNames, lookupTimeoutMs } from '../../src/upstream/name-lookup.ts'

const holder = (keyId: string) => ({ keyId, family: keyId })

/** Look-ups that are answered when the test says so. */
function slowServer() {
  const asked: string[] = []
  const answers = new Map<string, (addresses: string[] | Error) => void>()
  const lookup = (host: string) => {
    asked.push(host)
    return new Promise<string[]>((resolve, reject) =>
      answers.set(host, (given) => (given instanceof Error ? reject(given) : resolve(given))),
    )
  }
  return { asked, lookup, answer: (host: string, given: string[] | Error) => answers.get(host)?.(given) }
}

test('a name is looked up once, whoever asks meanwhile and in the seconds after', async () => {
  const server = slowServer()
  const names = createNames(server.lookup)
  const all = ['a', 'b', 'b'].map((keyId) => names('one.test', holder(keyId), 1000))
  server.answer('one.test', ['192.0.2.1'])
  expect(await Promise.all(all)).toEqual([['192.0.2.1'], ['192.0.2.1'], ['192.0.2.1']])
  expect(await names('one.test', holder('c'), 1000)).toEqual(['192.0.2.1'])
  expect(server.asked).toEqual(['one.test'])
})

test('that a name has no address is remembered too', async () => {
  const server = slowServer()
  const names = createNames(server.lookup)
  const first = names('none.test', holder('a'), 1000)
  server.answer('none.test', new Error('no such name'))
  expect(await first).toEqual([])
  expect(await names('none.test', holder('b'), 1000)).toEqual([])
  expect(server.asked).toEqual(['none.test'])
})

test('who waits gives up after its own time, and asks for the same look-up again', async () => {
  const server = slowServer()
  const names = createNames(server.lookup)
  expect(await names('slow.test', holder('a'), 1)).toEqual([])
  const again = names('slow.test', holder('a'), 1000)
  server.answer('slow.test', ['192.0.2.7'])
  expect(await again).toEqual(['192.0.2.7'])
  expect(server.asked).toEqual(['slow.test'])
})

test('one caller’s names are bounded while they are not answered, and others are looked up', async () => {
  const server = slowServer()
  const names = createNames(server.lookup)
  const mine = Array.from({ length: pendingLookupsMax / 4 }, (_, i) => names(`m${i}.test`, holder('mallory'), 1000))
  await expect(names('more.test', holder('mallory'), 1000)).rejects.toThrow('too many names')
  const hers = names('alice.test', holder('alice'), 1000)
  server.answer('alice.test', ['192.0.2.3'])
  expect(await hers).toEqual(['192.0.2.3'])
  for (const [i] of mine.entries()) server.answer(`m${i}.test`, [])
  await Promise.all(mine)
  const next = names('next.test', holder('mallory'), 1000)
  server.answer('next.test', ['192.0.2.4'])
  expect(await next).toEqual(['192.0.2.4'])
})

test('this machine’s own names are known', async () => {
  expect(await createNames()('localhost', holder('a'), 1000)).toContain('127.0.0.1')
})

test('a name is looked up again when what was found is too old', async () => {
  jest.useFakeTimers()
  try {
    let asked = 0
    const names = createNames(async () => {
      asked += 1
      return [`192.0.2.${asked}`]
    })
    const ask = () => names('one.test', holder('a'), 60_000)
    expect(await ask()).toEqual(['192.0.2.1'])
    jest.advanceTimersByTime(dnsCacheTtlMs - 1)
    expect(await ask()).toEqual(['192.0.2.1'])
    jest.advanceTimersByTime(1)
    expect(await ask()).toEqual(['192.0.2.2'])
  } finally {
    jest.useRealTimers()
  }
})

test('a look-up that nobody answers in time found nothing, and holds its share until it is answered', async () => {
  jest.useFakeTimers()
  try {
    const server = slowServer()
    const names = createNames(server.lookup)
    const ask = (name: string) => names(name, holder('a'), 60_000)
    const all = Array.from({ length: pendingLookupsMax / 4 }, (_, i) => ask(`m${i}.test`))
    const first = all[0] as Promise<readonly string[]>
    jest.advanceTimersByTime(lookupTimeoutMs - 1)
    const waiting = await Promise.race([first, Promise.resolve('waiting')])
    expect(waiting).toBe('waiting')
    jest.advanceTimersByTime(1)
    expect(await first).toEqual([])
    // For as long as another result is.
    expect(await ask('m0.test')).toEqual([])
    await expect(ask('more.test')).rejects.toThrow('too many names')
    server.answer('m0.test', ['192.0.2.1'])
    for (let i = 0; i < 10; i += 1) await Promise.resolve()
    jest.advanceTimersByTime(dnsCacheTtlMs)
    const again = ask('m0.test')
    // It was given back once.
    await expect(ask('more.test')).rejects.toThrow('too many names')
    server.answer('m0.test', ['192.0.2.2'])
    expect(await again).toEqual(['192.0.2.2'])
  } finally {
    jest.useRealTimers()
  }
})
