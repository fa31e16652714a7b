/** The law of the house: what a machine can check of how the source is arranged. */

import { describe, expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'

const root = resolve(import.meta.dir, '../src')
const files = readdirSync(root, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts'))
  .sort()
const textOf = (file: string) => readFileSync(join(root, file), 'utf8')

/** Static, dynamic and type imports; those of our own files by their path below `src`. */
function importsOf(file: string): string[] {
  const targets = [...textOf(file).matchAll(/(?:from|import\() ?'([^']+)'/g)].map(([, target = '']) => target)
  return targets.map((target) =>
    target.startsWith('.') ? relative(root, resolve(root, dirname(file), target)) : target,
  )
}

/** The room of a file: a folder, one of `features/`, or the root file itself. */
function roomOf(file: string): string {
  const [first = '', second = ''] = file.split('/')
  return first === 'features' ? `${first}/${second}` : first
}

/** From the top down: each room imports only from those below it. Rooms on one floor do not know one another. */
const floors: readonly (readonly string[])[] = [
  ['main.ts'],
  ['tools'],
  ['cli'],
  ['app.ts', 'maintenance'],
  ['fast-lane'],
  // Carries what health and records say.
  ['features/events'],
  // Leads to the endpoint; looks at its lists.
  ['features/registry', 'features/explain', 'features/health'],
  // All connections of a namespace as one.
  ['features/endpoint'],
  [
    'features/sign-in',
    'features/console',
    'features/authorization',
    'features/tokens',
    'features/connections',
    'features/organizations',
    'features/servers',
    'features/gateway',
    'features/records',
    'features/reference',
  ],
  // The page for people, which the server sends; it knows the interface alone.
  ['console'],
  // What the gateway calls in place of an upstream, and compares its answers with.
  ['features/mocks', 'features/upstream-sign-in', 'features/pins'],
  ['auth', 'upstream'],
  ['http'],
  ['fairness'],
  ['ops'],
  ['storage', 'search'],
  ['policy'],
  ['model'],
  ['schema'],
  ['errors.ts', 'operations.ts', 'version.ts', 'compiled.ts'],
  ['clock.ts', 'limits.ts', 'next-turn.ts', 'one-at-a-time.ts', 'per-request.ts', 'within.ts'],
]
const floorOf = (room: string) => floors.findIndex((rooms) => rooms.includes(room))

test('imports run one way, down', () => {
  for (const file of files) {
    const from = roomOf(file)
    expect({ file, floor: floorOf(from) >= 0 }).toEqual({ file, floor: true })
    for (const target of importsOf(file)) {
      const to = roomOf(target)
      if (from === to || !target.endsWith('.ts') || target.startsWith('..')) continue
      expect({ file, target, isBelow: floorOf(from) < floorOf(to) }).toEqual({ file, target, isBelow: true })
    }
  }
})

test('no file imports itself by way of others', () => {
  const seen = new Map<string, 'open' | 'done'>()
  const visit = (file: string, way: readonly string[]): void => {
    if (seen.get(file) === 'done' || !files.includes(file)) return
    expect(way.includes(file) ? [...way, file] : []).toEqual([])
    for (const target of importsOf(file)) visit(target, [...way, file])
    seen.set(file, 'done')
  }
  for (const file of files) visit(file, [])
})

describe('only one place', () => {
  const importersOf = (name: RegExp) => files.filter((file) => importsOf(file).some((target) => name.test(target)))
  const only: readonly (readonly [what: RegExp, importers: readonly string[]])[] = [
    [/^(?:elysia|@elysiajs\/)/, ['http/router.ts']],
    [/^tweetnacl$/, ['auth/signature.ts']],
    [/^lmdb$/, ['storage/lmdb/library.ts', 'storage/lmdb/root.ts']],
    [/^storage\/lmdb\/store\.ts$/, ['maintenance/copy.ts', 'maintenance/data-folder.ts']],
    [/^fast-lane\//, ['app.ts', 'fast-lane/fast-lane.ts', 'fast-lane/versioned-lane.ts']],
  ]
  for (const [what, importers] of only) {
    test(`imports ${what.source}`, () => expect(importersOf(what)).toEqual([...importers]))
  }

  test('parses JSON of others: schema/json.ts', () => {
    const parsers = files.filter((file) => /JSON\.parse\(|\.json\(\)/.test(textOf(file)))
    // Each of these reads a record of ours, or a text that was sealed or signed here.
    expect(parsers.filter((file) => !/^(?:cli|console|maintenance|schema|storage|tools)\//.test(file))).toEqual([
      ...['auth/expiring-records.ts', 'auth/sealed-parts.ts', 'auth/service-token.ts'],
      ...['auth/setup-links.ts', 'auth/signing-keys.ts'],
      ...['features/endpoint/client-session.ts', 'features/endpoint/endpoint-call.ts'],
      ...['features/endpoint/kept-record.ts', 'features/endpoint/pin-handlers.ts'],
      ...['features/endpoint/rendered-offer.ts', 'features/endpoint/search-tools.ts'],
      ...['features/endpoint/under-way.ts', 'features/explain/coverage.ts', 'features/pins/pin-record.ts'],
      ...['features/records/page-back.ts', 'features/reference/page-script.ts'],
      ...['features/registry/published-entries.ts', 'features/registry/registry-links.ts'],
      ...['features/upstream-sign-in/oauth-client.ts', 'ops/audit-chain.ts'],
    ])
  })

  test('reads the details of servers, each where it takes its owner’s time', () => {
    const readers = files.filter((file) => /\.serverJson\(/.test(textOf(file)))
    expect(readers).toEqual([
      ...['auth/stored-servers.ts', 'features/mocks/mocks.ts', 'features/servers/server-handlers.ts'],
    ])
  })

  test('asks the store without waiting: the fast lane', () => {
    const users = files.filter((file) => /LocalReads|\.local\b/.test(textOf(file)))
    expect(users.filter((file) => !file.startsWith('fast-lane/'))).toEqual([
      'app.ts',
      'storage/lmdb/store.ts',
      'storage/store.ts',
    ])
  })
})

test('policy, model and schema know no I/O, no framework and no clock', () => {
  for (const file of files.filter((name) => /^(?:policy|model|schema)\//.test(name))) {
    const found = /from '(?:node:fs|node:net|elysia|lmdb|bun)|Date\.now|new Date\(\)|process\./.exec(textOf(file))?.[0]
    expect({ file, found }).toEqual({ file, found: undefined })
  }
})

test('clocks and chance come in from the root', () => {
  /**
   * Each measures how long its own work takes, or how long it has kept something, or says when it made a key, or that
   * the user's token has expired.
   */
  const stopwatches = [
    'clock.ts',
    'fairness/slices.ts',
    'cli/client/api-client.ts',
    'cli/progress.ts',
    'cli/serve.ts',
    'fairness/turns.ts',
    'features/gateway/relayed-stream.ts',
    'features/gateway/tool-requests.ts',
    'maintenance/data-folder.ts',
    'storage/postgres/store.ts',
    'upstream/addresses.ts',
    'upstream/deadline-clock.ts',
    'storage/lmdb/opening-lock.ts',
    'upstream/connection-pool.ts',
    'upstream/name-lookup.ts',
    'upstream/open-connection.ts',
    'upstream/handshake.ts',
    'upstream/exchange.ts',
    'upstream/pooled-upstream.ts',
  ]
  const users = files.filter((file) => /performance\.now\(\)|Date\.now\b|Math\.random/.test(textOf(file)))
  expect(users.filter((file) => !stopwatches.includes(file))).toEqual([])
})

test('every bound says what happens past it, in limits.ts and elsewhere', () => {
  for (const file of files.filter((name) => name !== 'limits.ts')) {
    const bounds = [
      ...textOf(file).matchAll(/(\/\*\*(?:(?!\*\/)[^])*\*\/\n)?(?:export )?const (\w+(?:Max|Min|TimeoutMs)) = [\d(]/g),
    ]
    const silent = bounds
      .filter(([, comment = '']) => !/(?:Past|Below)\s+(?:\* )?it/.test(comment))
      .map(([, , name]) => name)
    expect({ file, silent }).toEqual({ file, silent: [] })
  }
})

test('every source file says first what it is', () => {
  for (const file of files) expect({ file, start: textOf(file).slice(0, 3) }).toEqual({ file, start: '/**' })
})

test('every room says what it is in one place', () => {
  const rooms = new Set(files.map(roomOf).filter((room) => !room.endsWith('.ts')))
  for (const room of [...rooms, 'features', 'storage/lmdb']) {
    expect({ room, says: existsSync(join(root, room, 'README.md')) }).toEqual({ room, says: true })
  }
})

test('every file that a README of a room names is there', () => {
  const readmes = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('README.md'))
  expect(readmes.length).toBeGreaterThan(10)
  for (const readme of readmes) {
    for (const [, name = ''] of readFileSync(join(root, readme), 'utf8').matchAll(/`([\w./-]+\.ts)`/g)) {
      const places = [join(root, readme, '..', name), join(root, name), join(root, '..', name)]
      expect({ readme, name, isThere: places.some(existsSync) }).toEqual({ readme, name, isThere: true })
    }
  }
})

test('no sentence begins with a relative Who or What', () => {
  // A sentence ends with a full stop, a question or an exclamation mark before a space; those in names do not count.
  const relative = /(?:^|[.:;?!)] |- )["(*]*(?:Who|What)(?:m|se|ever)?\b(?:[^.?!]|[.?!](?!\s|$))*(?:[.!](?=\s|$)|$)/g
  for (const file of files) {
    const found = commentsOf(file).flatMap((text) => text.match(relative) ?? [])
    expect({ file, found }).toEqual({ file, found: [] })
  }
})

/** The paragraphs of the comments of a file, each on one line. */
function commentsOf(file: string): string[] {
  const comments = textOf(file).match(/\/\*[^]*?\*\/|(?:^ *\/\/.*\n)+|(?<=\s)\/\/ .*$/gm) ?? []
  return comments
    .map((comment) => comment.replace(/^\/\*+|\*+\/$/g, '').replace(/^ *(?:\* ?|\/\/ ?)/gm, ''))
    .flatMap((text) => text.split(/\n\s*\n/))
    .map((text) => text.replace(/\s+/g, ' ').trim())
}

test('lines are no wider than the house, comments included', () => {
  for (const file of files) {
    const wide = textOf(file)
      .split('\n')
      .flatMap((line, index) => (line.length > widthMax && !hasLongWord(line) ? [index + 1] : []))
    expect({ file, wide }).toEqual({ file, wide: [] })
  }
})

const widthMax = 120
/** A text for people stands on one line in the source, whatever its length. */
const hasLongWord = (line: string) =>
  /^\s*(?:'|"|`|.*['"`].{60,})/.test(line) || /^\/\*\* (?:Ours|Spec|Contract)/.test(line)

test('no test has a time limit of its own: a busy machine breaks it', () => {
  const names = new Bun.Glob('**/*.test.ts').scanSync({ cwd: import.meta.dir })
  const limited = [...names].filter(
    (name) =>
      !name.includes('node_modules/') &&
      /^ *\}, (?:\{ timeout|\d[\d_]{3,}\))/m.test(readFileSync(join(import.meta.dir, name), 'utf8')),
  )
  expect(limited).toEqual([])
})

describe('what is long has a reason', () => {
  const linesMax = 400
  const functionLinesMax = 100
  const longFiles: Readonly<Record<string, string>> = {}
  const longFunctions: Readonly<Record<string, string>> = {
    'storage/postgres/primary.ts:watchPrimary': 'one state, which looks and heartbeats change at the same time',
  }

  test('files', () => {
    const long = files.filter((file) => textOf(file).split('\n').length - 1 > linesMax)
    expect(long).toEqual(Object.keys(longFiles).sort())
  })

  // By indentation, which the formatter keeps: from the line that opens a body to the one that closes it.
  test('functions', () => {
    const long: string[] = []
    for (const file of files) {
      const lines = textOf(file).split('\n')
      for (const [start, line] of lines.entries()) {
        if (!/(?:\)|=>)[^()]* \{$/.test(line) || /^ *(?:if|for|while|switch|\} )/.test(line)) continue
        const [indent = ''] = /^ */.exec(line) ?? []
        const head = lines.slice(0, start + 1).findLast((one) => one.startsWith(indent) && one.includes('function'))
        const name = /function\*? (\w+)/.exec(head ?? '')?.[1] ?? 'a function'
        const end = lines.findIndex((one, index) => index > start && one.startsWith(`${indent}}`))
        if (end - start + 1 > functionLinesMax) long.push(`${file}:${name}`)
      }
    }
    expect(long.sort()).toEqual(Object.keys(longFunctions).sort())
  })
})

test('each cache is in the table of the architecture, with what it spares', () => {
  /** Not made again from anything: what they keep is the truth, and a request's is gone with it. */
  const others: Readonly<Record<string, string>> = {
    'auth/authorizer.ts': 'the namespaces that a request has found',
    'fairness/allowance.ts': 'the owner of a request',
    'fairness/rate-limit.ts': 'what is left of rates',
    'features/endpoint/last-reads.ts': 'when servers were asked last, and what was wrong',
    'features/endpoint/under-way.ts': 'requests of servers that clients have answered',
    'features/gateway/connection-status.ts': 'when states were written last',
    'features/gateway/sessions.ts': 'sessions with servers',
    'http/middleware.ts': 'the id and the error of a request',
  }
  const [, section = ''] = readFileSync(join(root, '../docs/internals/architecture.md'), 'utf8').split('### Caches')
  const listed = [...section.matchAll(/src\/([^)]+\.ts)\)/g)].map(([, file]) => file as string)
  const caching = files.filter((file) =>
    /\bnew (?:LRUCache|WeakMap|PerRequest)\b|^export function createLocalVersions/m.test(textOf(file)),
  )
  expect(caching).toEqual([...listed, ...Object.keys(others)].sort())
})

test('a module that keeps something that changes has a reason', () => {
  /** On the server: the console's page is one program, and a command ends. */
  const reasons: Readonly<Record<string, string>> = {
    'fairness/allowance.ts': 'a request is counted for its owner wherever it comes to',
    'features/gateway/message.ts': 'a package that is loaded when it is needed',
    'schema/patterns.ts': 'patterns compiled by their content, whoever sends them',
    'storage/lmdb/addon.ts': 'set before the package of LMDB is loaded, which asks for it',
  }
  const holder = '(?:LRUCache|PerRequest|(?:Weak)?(?:Map|Set))'
  const changing = new RegExp(
    `^(?:export )?(?:let |const \\w+: ${holder}\\b|const \\w+ = new (?:LRUCache|${holder}(?:<[^(]*>)?\\(\\)))`,
    'm',
  )
  const keeping = files.filter((file) => !/^(?:console|tools)\//.test(file) && changing.test(textOf(file)))
  expect(keeping.filter((file) => !file.startsWith('features/reference/page-script'))).toEqual(Object.keys(reasons))
})
