/** Statements of the documents that the source, or the document itself, can prove. */

import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Command } from 'commander'
import { variableOf } from '../src/cli/config.ts'
import { createProgram } from '../src/cli/program.ts'
import { type ErrorCode, errorTable } from '../src/errors.ts'
import * as limits from '../src/limits.ts'
import { auditEvents } from '../src/model/audit-event.ts'
import { rpcCodes } from '../src/model/mcp.ts'
import { type Operation, operations } from '../src/operations.ts'

const root = resolve(import.meta.dir, '..')
const textOf = (file: string) => readFileSync(join(root, file), 'utf8')
const shippedPages = [...new Bun.Glob('docs/*.md').scanSync(root)].sort()
const nothing = () => undefined
const program = createProgram({
  terminal: { stdout: nothing, stderr: nothing, isStdoutClosed: () => false },
  json: false,
  exit: nothing,
})
const all = (command: Command): Command[] => [command, ...command.commands.flatMap(all)]

/** Words behind `postern` in messages, and as its own name in commands of others. */
const said = ['behind', 'is', 'postern', 'registered', 'serves', 'was', 'wrote']
/** Flags that pages name and that are none of postern. */
const ofOtherPrograms = ['--cacert', '--scope', '--force-confold']

describe('flags', () => {
  for (const command of program.commands.filter((one) => ['serve', 'dev'].includes(one.name()))) {
    test(`every flag of ${command.name()} has the environment variable of its name`, () => {
      // It is no setting of a server.
      for (const { long, envVar } of command.options.filter((one) => one.long !== '--check'))
        expect({ long, envVar }).toEqual({ long, envVar: variableOf(long ?? '') })
    })
  }

  test('every argument and flag of every command is described', () => {
    for (const command of all(program))
      for (const one of [...command.registeredArguments, ...command.options.filter(({ hidden }) => !hidden)])
        expect({ command: command.name(), one: one.name(), isDescribed: one.description !== '' }).toMatchObject({
          isDescribed: true,
        })
  })
})

describe('every command and flag that a page names exists', () => {
  const flagsOf = (command: Command) => ['--help', ...command.options.flatMap(({ long }) => long ?? [])]
  const known = new Set([...all(program).flatMap(flagsOf), ...ofOtherPrograms])
  for (const page of ['README.md', ...shippedPages])
    test(page, () => {
      const wrong: string[] = []
      for (const [, inline = '', block = ''] of textOf(page).matchAll(/```\w*\n([^]*?)```|`([^`]+)`/g)) {
        const code = `${inline}${block}`
        for (const [, words = ''] of code.matchAll(/(?:^|[\s(|;"'])postern ([^|;&()#\n]*)/g)) {
          let command = program
          const [first = '', ...others] = words.split(' ')
          for (const word of [first, ...others]) {
            const next = command.commands.find((one) => one.name() === word || one.aliases().includes(word))
            if (next === undefined) break
            command = next
          }
          if (command === program && /^[a-z]+(?:-[a-z]+)*$/.test(first) && !said.includes(first))
            wrong.push(`postern ${first}`)
          for (const flag of words.match(/(?<=^| )--[a-z][a-z-]+/g) ?? [])
            if (command !== program && !flagsOf(command).includes(flag)) wrong.push(`${command.name()} ${flag}`)
        }
        for (const [flag] of block.matchAll(/^--[a-z-]+[a-z](?!\w|-)/g)) if (!known.has(flag)) wrong.push(flag)
      }
      expect(wrong).toEqual([])
    })
})

test('the README has at most 160 lines', () => {
  expect(textOf('README.md').split('\n').length - 1).toBeLessThanOrEqual(160)
})

test('the glossary is in the order of the alphabet', () => {
  for (const file of ['docs/glossary.md', 'docs/internals/glossary.md']) expectInOrder(textOf(file))
})

function expectInOrder(glossary: string): void {
  const words = [...glossary.matchAll(/^\| \*\*([^*]+)\*\*/gm)].map(([, word = '']) => word)
  expect(words.length).toBeGreaterThan(20)
  expect(words).toEqual([...words].sort((a, b) => a.toLowerCase().localeCompare(b.toLowerCase(), 'en')))
}

test('the messages that docs/troubleshooting.md explains are messages of the source', () => {
  const files = [...new Bun.Glob('src/**/*.ts').scanSync(root)].map(textOf).join('\n')
  // Comments are no messages.
  const source = files.replaceAll(/^\s*(?:\/?\*|\/\/).*$/gm, '')
  const rows = textOf('docs/troubleshooting.md').match(/^\| [^|]+/gm) ?? []
  const messages = rows.flatMap((row) => [...row.matchAll(/`([^`]+)`/g)].map(([, message = '']) => message))
  expect(messages.length).toBeGreaterThan(50)
  for (const message of messages.filter((one) => one.includes(' ')))
    for (const part of message.split(/ ?…[ )]?/).filter((one) => one.length > 4))
      expect({ message, part, isThere: source.includes(part) }).toEqual({ message, part, isThere: true })
})

test('every part of a decision begins with a capital, or with postern', () => {
  const decisions = textOf('docs/internals/decisions.md')
  expect(decisions.match(/\*\*(?:Context|Choice|Given up)\.\*\*\s+(?!postern\b)[a-z].{0,30}/g) ?? []).toEqual([])
})

test('the evidence page says how many goals are not held', () => {
  const text = textOf('docs/internals/evidence.md')
  const count = text.match(/\| not held \|$/gm)?.length ?? 0
  const number = ['No', 'One', 'Two', 'Three', 'Four', 'Five'][count]
  expect(text).toContain(
    count < 2 ? `${number} row of the table misses its goal.` : `${number} rows of the table miss their goals.`,
  )
})

test('results are on the evidence page, and on no page of the executable', () => {
  for (const file of shippedPages) {
    const found = textOf(file).match(/^\|.*\| (?:not )?held \|$/m)
    expect({ file, found }).toEqual({ file, found: null })
  }
})

test('each result of the torture is one of a trial, and each trial has one or is said to have none yet', () => {
  const [, text = ''] = textOf('docs/internals/evidence.md').split('\n## Promises\n')
  const table = text.split('\n## ')[0] ?? ''
  const rows = [...table.matchAll(/^\| ([^|]+) \| [^|]+ \| held \|$/gm)].map(([, promise = '']) => promise)
  const trials = [...new Bun.Glob('test/torture/*.ts').scanSync(root)].flatMap((file) => {
    const [, name = '', promise] = /^ {2}name: '(.*)',\n {2}promise:\s+['`](.*)['`],$/m.exec(textOf(file)) ?? []
    return promise === undefined ? [] : [{ name, promise }]
  })
  expect(trials.length).toBeGreaterThan(20)
  // Some promises have a number of the source in them.
  const isOf = (promise: string, row: string) =>
    promise.split(/\$\{\w+\}/).every((part) => row.includes(part)) && row.length < promise.length + 20
  for (const row of rows)
    expect({ row, trials: trials.filter(({ promise }) => isOf(promise, row)).length }).toEqual({ row, trials: 1 })
  for (const { name, promise } of trials)
    expect({ name, isThere: rows.some((row) => isOf(promise, row)) || table.includes(`\`${name}\``) }).toEqual({
      name,
      isThere: true,
    })
})

test('every way to deploy postern gives it as many file descriptors', () => {
  const files = ['postern.service', 'compose.yaml', 'compose.replicas.yaml']
  const given = files.map(
    (file) => /^ *(?:LimitNOFILE=|ulimits: \{ nofile: )(\d+)/m.exec(textOf(`deploy/${file}`))?.[1],
  )
  const [, run] = /docker run [^]*?--ulimit nofile=(\d+)/.exec(textOf('docs/deployment.md')) ?? []
  expect([...given, run]).toEqual(Array(4).fill('65536'))
})

test('docs/audit.md has every event of the audit log, and no other', () => {
  const table = textOf('docs/audit.md').split('\n## ')[1] ?? ''
  const rows = [...table.matchAll(/^\| (`[^|]+) \|/gm)].map(([, first = '']) => first)
  const told = rows.flatMap((row) => [...row.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name))
  expect(told.sort()).toEqual([...auditEvents].sort())
})

/** Cells of each row of the first table under a heading of a page. */
function rowsUnder(file: string, heading: string): string[][] {
  const [, after = ''] = textOf(file).split(`\n${heading}\n`)
  const [table = ''] = /(?:^\|.*\n)+/m.exec(after.split(/\n#+ /)[0] ?? '') ?? []
  const lines = table.trimEnd().split('\n').slice(2)
  return lines.map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  )
}

describe('docs/http-api.md has', () => {
  const page = 'docs/http-api.md'
  const errors = Object.entries(errorTable).map(([code, row]) => ({ code: code as ErrorCode, ...row }))

  test('every code of an error, with its status, and no other', () => {
    const rows = rowsUnder(page, '### Codes').flatMap(([status = '', codes = '']) =>
      [...codes.matchAll(/`(\w+)`/g)].map(([, code]) => `${status} ${code}`),
    )
    const outside = errors.filter((row) => !('outsideRpc' in row)).map(({ status, code }) => `${status} ${code}`)
    expect(rows.sort()).toEqual(outside.sort())
  })

  test('every code of JSON-RPC, with its status, and no other', () => {
    const rows = rowsUnder(page, '### JSON-RPC errors').flatMap(([code = '', statuses = '']) =>
      statuses.split(', ').map((status) => `${code} ${status}`),
    )
    // Neither is an answer of `/mcp`: it stores nothing, and an internal error is no answer to a message.
    const others: readonly ErrorCode[] = ['conflict', 'internal']
    const known = [
      ...errors.filter(({ code }) => !others.includes(code)).map(({ rpcCode, status }) => `${rpcCode} ${status}`),
      // What the headers of the stateless revision need.
      `${rpcCodes.headerMismatch} 400`,
      `${rpcCodes.invalidParams} 400`,
    ]
    expect([...new Set(rows)].sort()).toEqual([...new Set(known)].sort())
  })

  test('every endpoint and error of OAuth', () => {
    const text = textOf(page)
    const paths = Object.values(operations).filter(({ path }) =>
      /^\/oauth\/(?:authorize|token|register|revoke)|^\/\.well-known\/oauth/.test(path),
    )
    expect(paths.length).toBeGreaterThan(6)
    for (const { method, path } of paths.filter(
      (one) => !('errors' in one && one.method === 'POST' && one.errors === 'page'),
    ))
      expect({ path, isThere: text.includes(`\`${method} ${path.replace(/\/\{\+path\}$/, '')}\``) }).toEqual({
        path,
        isThere: true,
      })
    const [, union = ''] = /OAuthErrorCode =([^]*?)\n\n/.exec(textOf('src/features/authorization/oauth-error.ts')) ?? []
    const codes = [...union.matchAll(/'(\w+)'/g)].map(([, code = '']) => code)
    const rows = [...text.matchAll(/^\| (`[a-z_`, ]+`) \| 40[01] \|/gm)].map(([, names = '']) => names)
    expect(rows.flatMap((names) => names.split(', ')).sort()).toEqual(codes.map((code) => `\`${code}\``).sort())
  })

  test('the shape of the errors of every path', () => {
    const [, where = ''] = rowsUnder(page, '## Errors').find(([shape]) => shape === '`{"error": text}`') ?? []
    const beginnings = [...where.matchAll(/`([^`]+)`/g)].map(([, path = '']) => path)
    for (const { path, errors: shape } of Object.values<Operation>(operations)) {
      const isText = shape === 'text' || shape === 'server'
      expect({ path, isText: beginnings.some((one) => path === one || path.startsWith(`${one}/`)) }).toEqual({
        path,
        isText,
      })
    }
  })

  test('the sizes of pages', () => {
    const rows = rowsUnder(page, '### Two kinds of pages').map(([list = '', ask = '']) => [list, ask.match(/\d+/g)])
    expect(rows).toEqual([
      ['`GET /connect/{namespace}`', ['1', `${limits.pageItemsMax}`, `${limits.pageItemsDefault}`]],
      ['`GET /v0.1/servers`', ['1', `${limits.registryPageMax}`, `${limits.registryPageDefault}`]],
      ['`GET /calls`, `GET /audit`', ['1', `${limits.listPageMax}`, `${limits.listPageMax}`]],
      ['`GET /servers`', ['1', '1', `${limits.serversPageMax}`, `${limits.serversPageDefault}`]],
      ['`GET /namespaces`', ['1', '1', `${limits.namespacesPageMax}`, `${limits.namespacesPageMax}`]],
      [
        '`GET /api-keys`, `GET /grants`, `GET /me/grants`',
        ['1', '1', `${limits.listPageMax}`, `${limits.listPageMax}`],
      ],
    ])
  })
})
