/**
 * `make bench`: ratios against yardsticks of the same run, processor time a request first. Two cores are
 * shared with the load generator, so requests a second are for orientation only.
 *
 *   bun test/bench/run.ts [CONNECTIONS] [ROUNDS]     (1,000,000 and 5)
 */

import { createPublicKey, sign, verify } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Authenticator } from '../../src/auth/authenticate.ts'
import { createDirectory } from '../../src/auth/directory.ts'
import { verifyToken } from '../../src/auth/service-token.ts'
import { systemClock } from '../../src/clock.ts'
import { unauthorized } from '../../src/errors.ts'
import { Slices } from '../../src/fairness/slices.ts'
import { Turns } from '../../src/fairness/turns.ts'
import { createConnectionLists } from '../../src/features/connections/connection-lists.ts'
import { sealCursor } from '../../src/features/connections/cursor.ts'
import type { Filter } from '../../src/features/connections/list-query.ts'
import { openDataFolder } from '../../src/maintenance/data-folder.ts'
import type { Block } from '../../src/policy/block.ts'
import { mintToken } from '../api/cases.ts'
import { startServer, type Workplace } from '../support/executable.ts'
import { random } from '../support/random.ts'
import { signToken } from '../support/sign-token.ts'
import { catalogue } from './catalogue.ts'
import { consoles } from './console.ts'
import { benchKey, connection, server, writeFixtures } from './data.ts'
import { endpoint } from './endpoint.ts'
import { explain } from './explain.ts'
import { gateway } from './gateway.ts'
import { manyNamespaces } from './many-namespaces.ts'
import {
  anonymousMemory,
  get,
  longestHold,
  median,
  memoryMost,
  micro,
  type Served,
  serve,
  startScript,
  time,
} from './measure.ts'
import { minting } from './minting.ts'
import { startJsonServer, startPrism } from './peers.ts'
import { replicas } from './replicas.ts'
import { signIn } from './sign-in.ts'

const count = Number(process.argv[2] ?? 1_000_000)
const rounds = Number(process.argv[3] ?? 5)
/** Each subject in each round, in turns with its yardstick. */
const slicesOfRound = 3
const sliceSeconds = 0.5
/** Until everything that is hot has been compiled. */
const warmUpSeconds = 5
const folder = mkdtempSync(join(tmpdir(), 'postern-bench-'))
const place: Workplace = { folder, data: join(folder, 'data'), [Symbol.dispose]: () => {} }
const rows: [what: string, figure: string, goal: string, held: boolean | undefined][] = []

function report(what: string, figure: string, goal = '', held?: boolean): void {
  rows.push([what, figure, goal, held])
  console.log(
    `${what}: ${figure}${goal === '' ? '' : `  (goal: ${goal})`}${held === undefined ? '' : held ? '  held' : '  NOT held'}`,
  )
}

try {
  await loading()
  await overHttp()
  await minting(report, place, rounds)
  await inProcess()
  await gateway(report, rounds)
  await signIn(report, rounds)
  await endpoint(report, rounds)
  await consoles(report, rounds)
  await explain(report, rounds)
  await catalogue(report, rounds)
  await manyNamespaces(report, rounds)
  await replicas(report, rounds)
} finally {
  rmSync(folder, { recursive: true, force: true })
}
console.log(`\n| What | Measured | Goal | |\n|---|---|---|---|`)
for (const [what, figure, goal, held] of rows) {
  console.log(`| ${what} | ${figure} | ${goal} | ${held === undefined ? '' : held ? 'held' : 'not held'} |`)
}

async function loading(): Promise<void> {
  const fixtures = join(folder, 'fixtures')
  writeFixtures(fixtures, count)
  let started = performance.now()
  const loader = await startServer(place, ['--fixtures', fixtures])
  const seconds = (performance.now() - started) / 1000
  const rate = (count + 1000) / seconds
  report(
    `Load ${count.toLocaleString('en')} connections from fixtures`,
    `${Math.round(rate).toLocaleString('en')} a second`,
    '20,000 a second',
    rate >= 20_000,
  )
  const most = memoryMost(loader.pid)
  report('Memory while it loads, at its most', `${most.toFixed(0)} MB`, '1,000 MB', most < 1000)
  await Bun.sleep(2000)
  const left = anonymousMemory(loader.pid)
  report('Anonymous memory two seconds after the load has ended', `${left.toFixed(0)} MB`, '150 MB', left < 150)
  await loader.kill('SIGTERM')
  rmSync(fixtures, { recursive: true, force: true })
  const readies: number[] = []
  for (let i = 0; i < 7; i += 1) {
    started = performance.now()
    const one = await startServer(place, [])
    await fetch(`${one.url}/health`)
    readies.push(performance.now() - started)
    if (i === 6) {
      const memory = anonymousMemory(one.pid)
      report('Anonymous memory of an idle server', `${memory.toFixed(0)} MB`, '80 MB', memory < 80)
    }
    await one.kill('SIGTERM')
  }
  report('From start to first answer', `${median(readies).toFixed(0)} ms`, '100 ms', median(readies) < 100)
}

async function overHttp(): Promise<void> {
  await using ours = await startServer(place, [])
  const port = Number(new URL(ours.url).port)
  const authorization = { Authorization: `Bearer ${benchKey}` }
  const ask = (path: string, headers = {}) => get(port, path, { ...authorization, ...headers })
  const first = await fetch(`${ours.url}/connect/bench`, { headers: authorization })
  const pageBytes = await first.bytes()
  const detailBytes = await (await fetch(`${ours.url}/servers/bench%2Freports`, { headers: authorization })).bytes()
  writeFileSync(join(folder, 'page.json'), pageBytes)
  writeFileSync(join(folder, 'server.json'), detailBytes)
  const etag = first.headers.get('etag') ?? ''

  // Each page once: what is kept of earlier answers does not help.
  const walk: string[] = []
  let cursor = (JSON.parse(Buffer.from(pageBytes).toString()) as { nextCursor: string | null }).nextCursor
  while (cursor !== null && walk.length < 4000) {
    walk.push(`/connect/bench?cursor=${cursor}`)
    const page = await fetch(`${ours.url}/connect/bench?cursor=${cursor}`, { headers: authorization })
    cursor = ((await page.json()) as { nextCursor: string | null }).nextCursor
  }
  const shuffled = [...walk]
  const chance = random(1)
  for (let i = shuffled.length - 1; i > 0; i -= 1) {
    const j = chance.int(i + 1)
    ;[shuffled[i], shuffled[j]] = [shuffled[j] as string, shuffled[i] as string]
  }
  const token = await mintToken((path, init) => fetch(`${ours.url}${path}`, init), benchKey, {
    policy: [{ namespaces: 'bench', metadata: { userId: 'user-500000' } }],
  })

  const yard = await startScript('yardstick.ts', join(folder, 'page.json'), join(folder, 'server.json'))
  const changing = await startScript('changing.ts', place.data)
  const small = Array.from({ length: 1000 }, (_, i) => connection(i))
  using prism = await startPrism(folder, { connections: small.slice(0, 100), nextCursor: null }, server())
  using jsonServer = await startJsonServer(folder, small)

  interface Subject {
    readonly pid: number
    readonly port: number
    readonly requests: readonly string[]
    readonly status?: string
    /** What it is measured against, right before it: this machine's mood changes within seconds. */
    readonly yardstick?: Subject
  }
  const yardPage: Subject = { pid: yard.pid, port: yard.port, requests: [get(yard.port, '/page', authorization)] }
  const yardServer: Subject = { pid: yard.pid, port: yard.port, requests: [get(yard.port, '/server', authorization)] }
  const subjects: Record<string, Subject> = {
    'page, unchanged': { pid: ours.pid, port, requests: [ask('/connect/bench')], yardstick: yardPage },
    'page, 304': { pid: ours.pid, port, requests: [ask('/connect/bench', { 'If-None-Match': etag })], status: '304' },
    'page, changed since': {
      pid: changing.pid,
      port: changing.port,
      requests: [get(changing.port, '/connect/bench', authorization)],
      yardstick: yardPage,
    },
    'page, each once, in order': {
      pid: ours.pid,
      port,
      requests: walk.map((path) => ask(path)),
      yardstick: yardPage,
    },
    'page, each once, at random': {
      pid: ours.pid,
      port,
      requests: shuffled.map((path) => ask(path)),
      yardstick: yardPage,
    },
    'page of 1,000 rows in all': { pid: ours.pid, port, requests: [ask('/connect/small')] },
    'server details': {
      pid: ours.pid,
      port,
      requests: [ask('/servers/bench%2Freports')],
      yardstick: yardServer,
    },
    'list with a scoped token': {
      pid: ours.pid,
      port,
      requests: [get(port, '/connect/bench', { Authorization: `Bearer ${token}` })],
    },
    'prism, page': { pid: prism.pid, port: prism.port, requests: [get(prism.port, '/connect/small')] },
    'prism, server details': { pid: prism.pid, port: prism.port, requests: [get(prism.port, '/servers/reports')] },
    'json-server, page': {
      pid: jsonServer.pid,
      port: jsonServer.port,
      requests: [get(jsonServer.port, '/connections?_page=1&_limit=100')],
    },
  }
  const results = new Map<string, { served: Served; yardstick: Served | undefined }[]>()
  for (let round = 0; round <= rounds; round += 1) {
    const isWarmUp = round === 0
    const seconds = isWarmUp ? warmUpSeconds : sliceSeconds
    const measure = ({ pid, port, requests, status }: Subject) =>
      serve(pid, { port, seconds, connections: 32, requests }, status)
    for (const [name, subject] of Object.entries(subjects)) {
      for (let slice = 0; slice < (isWarmUp ? 1 : slicesOfRound); slice += 1) {
        const yardstick = subject.yardstick === undefined ? undefined : await measure(subject.yardstick)
        const served = await measure(subject)
        if (!isWarmUp) results.set(name, [...(results.get(name) ?? []), { served, yardstick }])
      }
    }
  }
  yard.stop()
  changing.stop()
  const cpu = (name: string) => median((results.get(name) ?? []).map(({ served }) => served.cpu))
  const perSecond = (name: string) => median((results.get(name) ?? []).map(({ served }) => served.perSecond))
  for (const name of results.keys()) {
    console.log(
      `  ${name}: ${micro(cpu(name))} of processor time, ${Math.round(perSecond(name)).toLocaleString('en')} a second`,
    )
  }
  const against = (what: string, name: string, most: number) => {
    const pairs = (results.get(name) ?? []).map(({ served, yardstick }) => ({
      ours: served.cpu,
      bare: yardstick?.cpu ?? Number.NaN,
    }))
    const ratio = median(pairs.map(({ ours, bare }) => ours / bare))
    const bare = median(pairs.map((pair) => pair.bare))
    report(what, `${ratio.toFixed(2)} × (postern ${micro(cpu(name))}, bare ${micro(bare)})`, `${most} ×`, ratio <= most)
  }
  against('Page of 100 that has not changed, compared with a bare Bun.serve', 'page, unchanged', 1.4)
  against('Page of 100 after a change, compared with a bare Bun.serve', 'page, changed since', 2.5)
  against(
    'Page of 100 when a client reads all pages in order, compared with a bare Bun.serve',
    'page, each once, in order',
    6,
  )
  against('Page of 100 at a random place, compared with a bare Bun.serve', 'page, each once, at random', 6)
  against('Server details of 8 kB, compared with a bare Bun.serve', 'server details', 1.7)
  const peer = (what: string, name: string, peerName: string) => {
    const times = cpu(peerName) / cpu(name)
    report(what, `${times.toFixed(1)} times less processor time`, '3 times', times >= 3)
  }
  peer('Server details against @stoplight/prism-cli', 'server details', 'prism, server details')
  peer('List against @stoplight/prism-cli', 'page of 1,000 rows in all', 'prism, page')
  peer('List against json-server', 'page of 1,000 rows in all', 'json-server, page')
}

async function inProcess(): Promise<void> {
  const data = await openDataFolder(place.data)
  const { store, secrets } = data
  const directory = createDirectory(store)
  const authenticator = new Authenticator({
    directory,
    pepper: secrets.apiKeyPepper,
    sealingKey: secrets.sealingKey,
    issuer: 'http://localhost',
    clock: systemClock,
    refuse: unauthorized,
  })
  const keys = await authenticator.keys()
  const lists = createConnectionLists(store, secrets.cursorKey)
  const page = (namespace: string, filters: readonly Filter[] = [], blocks: readonly Block[] = [], from?: string) => {
    const scope = { namespace, filters, blocks }
    const { binding } = lists.prepare(scope, { limit: 100, filters, cursor: undefined }, '')
    const cursor = from === undefined ? undefined : sealCursor(secrets.cursorKey, binding, from)
    // Made each time, its cursor opened, as for a URL that nobody has asked before.
    return () =>
      lists.readPage(
        lists.prepare(scope, { limit: 100, filters, cursor }, ''),
        new Slices(new Turns(), { keyId: 'bench', family: 'bench' }),
      )
  }
  const at = (share: number) => `connection-${String(Math.floor(count * share)).padStart(8, '0')}`

  // Like with like: a page that begins at a cursor opens it first.
  const smallAt = (share: number) => `connection-${String(Math.floor(1000 * share)).padStart(8, '0')}`
  const depths = [page('bench'), page('bench', [], [], at(0.5)), page('bench', [], [], at(0.99))]
  const smallDepths = [page('small'), page('small', [], [], smallAt(0.5)), page('small', [], [], smallAt(0.5))]
  const pairs = depths.map(() => ({ large: [] as number[], small: [] as number[] }))
  // One right after the other, for the same reason as above.
  for (let round = 0; round < 4 * rounds; round += 1) {
    for (const [index, pair] of pairs.entries()) {
      pair.small.push(await time(1, 500, smallDepths[index] as () => Promise<unknown>))
      pair.large.push(await time(1, 500, depths[index] as () => Promise<unknown>))
    }
  }
  const large = pairs.map((pair) => median(pair.large))
  const small = pairs.map((pair) => median(pair.small))
  const flat = Math.max(
    ...pairs.map((pair) => median(pair.large.map((figure, round) => figure / (pair.small[round] as number)))),
  )
  report(
    `Page at any depth of a namespace of ${count.toLocaleString('en')}, compared with a namespace of 1,000`,
    `${flat.toFixed(2)} × at most (at its start, middle and end: ${large.map(micro).join(', ')}; in the small one, at its start and twice at its middle: ${small.map(micro).join(', ')})`,
    '1.3 ×',
    flat <= 1.3,
  )

  const metadata = (key: string, value: string): Filter => ({ field: 'metadata', key, value })
  const set = (...pairs: [string, string][]): Block => ({ metadata: [pairs] })
  const rare: [string, () => Promise<unknown>][] = [
    ['metadata.userId', page('bench', [metadata('userId', `user-${count / 2}`)])],
    ['name', page('bench', [{ field: 'name', value: `Reporting connection number ${count / 2}` }])],
    [
      'userId and a filter that half of the rows match',
      page('bench', [metadata('userId', `user-${count / 2}`), metadata('half', 'even')]),
    ],
    ["a token's constraint", page('bench', [], [set(['userId', `user-${count / 2}`])])],
    [
      "a token's constraint and a filter",
      page('bench', [metadata('half', 'even')], [set(['userId', `user-${count / 2}`])]),
    ],
  ]
  for (const [what, run] of rare) {
    const took = await time(rounds, 1000, run)
    report(`Finding one row of ${count.toLocaleString('en')} by ${what}`, micro(took), '1 ms', took < 1000)
  }
  const common: [string, () => Promise<unknown>][] = [
    ['one row of three', page('bench', [metadata('env', 'prod')])],
    ['one row of a thousand', page('bench', [metadata('team', 'team-7')])],
    ['one row of six, by two filters', page('bench', [metadata('env', 'prod'), metadata('half', 'even')])],
  ]
  for (const [what, run] of common) report(`A page of 100 that keeps ${what}`, micro(await time(rounds, 300, run)))
  const worst: [string, () => Promise<unknown>][] = [
    [
      'a list query with two conditions, each true for a third of the rows, and both for none',
      page('bench', [], [set(['env', 'prod']), set(['env', 'staging'])]),
    ],
    [
      'a list query with three large terms',
      page('bench', [metadata('env', 'prod'), metadata('half', 'even'), metadata('team', 'team-1')]),
    ],
    [
      'a list query with an OR of two ANDs that no row satisfies',
      page(
        'bench',
        [],
        [
          {
            metadata: [
              [
                ['env', 'prod'],
                ['env', 'test'],
              ],
              [
                ['env', 'staging'],
                ['env', 'test'],
              ],
            ],
          },
        ],
      ),
    ],
  ]
  for (const [what, run] of worst) {
    const took = await time(3, 3, run)
    const holds: number[] = []
    for (let i = 0; i < 5; i += 1) holds.push(await longestHold(run))
    report(
      `Longest time in which the event loop is blocked by ${what}`,
      `${median(holds).toFixed(1)} ms at a time (${(took / 1000).toFixed(0)} ms in all)`,
      '10 ms',
      median(holds) < 10,
    )
  }

  const nowSeconds = Math.floor(Date.now() / 1000)
  const issuer = 'http://localhost'
  const claims = (i: number) => ({
    iss: issuer,
    aud: issuer,
    sub: 'owner',
    key: '',
    jti: `tok_${i}`,
    iat: nowSeconds,
    exp: nowSeconds + 3600,
    policy: [{ namespaces: 'bench' }],
  })
  const tokens = Array.from({ length: 2000 }, (_, i) => signToken(claims(i), keys.active))
  const cold = await time(rounds, 2000, (i) =>
    verifyToken(tokens[i] as string, { keys, issuer, path: undefined, nowSeconds }),
  )
  report('Token check, never seen before', micro(cold), '60 µs', cold < 60)
  const { privateKey, jwk } = keys.active
  const publicKey = createPublicKey({ key: { ...jwk }, format: 'jwk' })
  const parts = tokens.map((token) => {
    const dot = token.lastIndexOf('.')
    return { signed: Buffer.from(token.slice(0, dot)), signature: Buffer.from(token.slice(dot + 1), 'base64url') }
  })
  const part = (i: number) => parts[i] as (typeof parts)[0]
  const signing = await time(rounds, 2000, (i) => sign(null, part(i).signed, privateKey))
  const verifying = await time(rounds, 2000, (i) => {
    if (!verify(null, part(i).signed, publicKey, part(i).signature)) throw new Error('a signature that is none')
  })
  report('Part of that check: signing the token again', `${micro(signing)} (to verify would take ${micro(verifying)})`)
  const request = new Request('http://localhost/', { headers: { authorization: `Bearer ${benchKey}` } })
  const warm = await time(rounds, 20_000, () => authenticator.authenticate(request))
  report('Check of a credential seen before, with its revocation and expiry', micro(warm), '5 µs', warm < 5)
  const mint = await time(rounds, 100, (i) => signToken(claims(i), keys.active))
  report('Minting (tweetnacl)', micro(mint))

  // Installed by the benchmark's own package file, so its types are not there when ours are checked.
  const { jwtVerify, SignJWT } = await import(join(import.meta.dir, 'node_modules/jose/dist/webapi/index.js'))
  const { active } = keys
  const joseToken = await new SignJWT(claims(0))
    .setProtectedHeader({ alg: 'EdDSA', kid: active.kid })
    .sign(await importedKey())
  const josePublic = await crypto.subtle.importKey('jwk', { ...active.jwk }, 'Ed25519', true, ['verify'])
  const jose = await time(rounds, 2000, () => jwtVerify(joseToken, josePublic, { issuer, audience: issuer }))
  report(
    'Token check against jose, never seen before',
    `${(jose / cold).toFixed(1)} times faster (${micro(jose)} to ${micro(cold)})`,
    '3 times',
    jose / cold >= 3,
  )
  report(
    'Token check against jose, seen before',
    `${(jose / warm).toFixed(1)} times faster`,
    '3 times',
    jose / warm >= 3,
  )
  await store.close()

  async function importedKey() {
    const d = Buffer.from(active.secretKey.slice(0, 32)).toString('base64url')
    return crypto.subtle.importKey('jwk', { kty: 'OKP', crv: 'Ed25519', x: active.jwk.x, d }, 'Ed25519', true, ['sign'])
  }
}
