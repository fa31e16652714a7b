import { expect, test } from 'bun:test'
import {
  createOwnerPasses,
  inPasses,
  longPassMs,
  ownerRequestsPerPassMax,
  receivedInPass,
  requestsPerPassMax,
  waitingPerPassMax,
} from '../../src/fairness/passes.ts'
import { clockOf } from '../support/clock.ts'

const request = new Request('http://localhost/health')
const connectionOf = ({ headers }: Request) => headers.get('x-test-connection') ?? 'one'
const gone = new Set<Request>()
const parts = (now = () => 0) => ({
  sockets: {
    addressOf: (one: Request) => one.headers.get('x-test-address') ?? 'here',
    connectionOf: (one: Request) => (gone.has(one) ? undefined : connectionOf(one)),
  },
  refuse: (closes = false) => new Response(null, { status: 429, ...(closes && { headers: { connection: 'close' } }) }),
  mayWait: ({ headers }: Request) => !headers.has('x-test-costly'),
  clock: clockOf(now),
})

test('requests past the bound are answered in the next pass, and those after it at once', async () => {
  const ends: (() => void)[] = []
  const endPass = () => {
    for (const run of ends.splice(0)) run()
  }
  let answered = 0
  const answer = inPasses(
    () => {
      answered += 1
      return new Response()
    },
    parts(),
    (run) => void ends.push(run),
  )
  const given = Array.from({ length: requestsPerPassMax + 3 }, () => answer(request))
  expect(given.filter((one) => one instanceof Promise)).toHaveLength(3)
  expect(answered).toBe(requestsPerPassMax)
  endPass()
  expect(answer(request)).toBeInstanceOf(Response)
  await Promise.all(given)
  expect(answered).toBe(requestsPerPassMax + 4)
})

test('in a pass that lasts long, only some of a network wait, and those of others do', async () => {
  const ends: (() => void)[] = []
  let now = 0
  const answer = inPasses(
    () => new Response(),
    parts(() => now),
    (run) => void ends.push(run),
  )
  const fromElsewhere = { 'x-test-address': 'elsewhere', 'x-test-connection': 'two' }
  const elsewhere = new Request('http://localhost/me', { headers: fromElsewhere })
  const fill = (count: number) => Array.from({ length: count }, () => answer(request))
  const waiting = fill(requestsPerPassMax + 2 * waitingPerPassMax).slice(requestsPerPassMax)
  expect(waiting.every((one) => one instanceof Promise)).toBe(true)
  // The runtime would make its URL, in milliseconds perhaps.
  expect(
    answer(new Request('http://localhost/me', { headers: { 'x-test-costly': '1', 'x-test-connection': 'costly' } })),
  ).toBeInstanceOf(Response)
  // Its client would not read it.
  const left = new Request('http://localhost/me')
  gone.add(left)
  expect(answer(left)).toBeInstanceOf(Response)
  now = longPassMs + 1
  const refusalOf = (given: Response | Promise<Response>) =>
    given instanceof Response && [given.status, given.headers.get('connection')]
  expect(refusalOf(answer(request))).toEqual([429, null])
  // Behind it on the same connection, which ends with all that was sent ahead on it.
  expect(refusalOf(answer(request))).toEqual([429, 'close'])
  const leaving = new Request('http://localhost/me', { headers: fromElsewhere })
  const last = [answer(elsewhere), answer(leaving)]
  expect(last.every((one) => one instanceof Promise)).toBe(true)
  const another = answer(new Request('http://localhost/me', { headers: { 'x-test-connection': 'another' } }))
  expect(refusalOf(another)).toEqual([429, null])
  // Nobody reads the answer to a request whose client has gone meanwhile.
  gone.add(leaving)
  for (const run of ends.splice(0)) run()
  expect((await Promise.all([...waiting, ...last])).map(({ status }) => status)).toEqual([
    ...waiting.map(() => 200),
    ...[200, 429],
  ])
  expect(answer(request)).toBeInstanceOf(Response)
})

test('passes with few requests each never reach the bound', () => {
  const ends: (() => void)[] = []
  const answer = inPasses(
    () => new Response(),
    parts(),
    (run) => void ends.push(run),
  )
  for (let i = 0; i < 3 * requestsPerPassMax; i += 1) {
    expect(answer(request)).toBeInstanceOf(Response)
    for (const run of ends.splice(0)) run()
  }
})

test('an owner has its part of each pass, in the order of its requests, and others have theirs', async () => {
  const ends: (() => void)[] = []
  const passes = createOwnerPasses((run) => void ends.push(run))
  const handled: string[] = []
  const enter = async (userId: string, name: string) => {
    const place = passes.enter({ keyId: `key of ${userId}`, family: name, userId })
    if (place !== undefined) await place
    handled.push(name)
  }
  const endPass = async () => {
    for (const run of ends.splice(0)) run()
    await Promise.resolve()
    return handled.splice(0)
  }
  const names = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => `a${from + i}`)
  const most = ownerRequestsPerPassMax
  for (const name of names(0, 2 * most + 2)) void enter('a', name)
  void enter('b', 'other')
  expect(handled.splice(0)).toEqual([...names(0, most), 'other'])
  expect(await endPass()).toEqual(names(most, 2 * most))
  // One that comes now is behind those that wait, and whoever is new has a part of its own.
  void enter('a', 'late')
  void enter('c', 'new')
  expect(handled.splice(0)).toEqual(['new'])
  expect(await endPass()).toEqual([...names(2 * most, 2 * most + 2), 'late'])
  expect(await endPass()).toEqual([])
  expect(ends).toEqual([])
  // Many of one family do not keep the owner's others waiting.
  for (let i = 0; i < 10 * most; i += 1) void enter('a', 'token')
  void enter('a', 'key')
  handled.splice(0)
  expect(await endPass()).toEqual(['token', 'key', ...Array.from({ length: most - 2 }, () => 'token')])
  while ((await endPass()).length > 0);
  // Passes with few requests each never reach the bound.
  for (let i = 0; i < 3 * most; i += 1) {
    void enter('a', 'one')
    expect(handled.splice(0)).toEqual(['one'])
    await endPass()
  }
})

test('a body that came with its head waits for no other pass, and a late one does', async () => {
  let [passes, now] = [0, 0]
  const owner = {
    pass() {
      passes += 1
      return undefined
    },
  }
  const clock = clockOf(() => now)
  expect([await receivedInPass(owner, Promise.resolve('a'), clock), passes]).toEqual(['a', 0])
  const { promise, resolve } = Promise.withResolvers<string>()
  const received = receivedInPass(owner, promise, clock)
  now += 2
  resolve('b')
  expect([await received, passes]).toEqual(['b', 1])
})
