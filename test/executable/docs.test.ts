/**
 * The README and the documents of `docs/`: their shell examples run, in order, against the executable, and print what
 * the document shows.
 *
 * What a document says with its Markdown:
 *
 * - A block of `sh` is run. A block of `text` right after it is what it prints, `…` standing for what differs from run to
 *   run; on a line of its own, for any lines.
 * - `<!-- not run: why -->` before a block: it is not run. `<!-- exit code 1 -->`: it must end so.
 * - A block of `json` after "Write `FILE`:" is that file.
 * - `postern serve` and `postern dev` go on running until the next of them, or the end of the document. Those with a
 *   `--replica` run beside each other.
 * - `127.0.0.1:5432` is a PostgreSQL with nothing in it, whose administrator is `postgres`.
 */

import { describe, expect, test } from 'bun:test'
import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { executable, sampleFolder, type Workplace, withoutProgress, workplace } from '../support/executable.ts'
import { freePort } from '../support/free-port.ts'
import { isHere } from '../support/needs.ts'
import { startPostgres } from '../support/postgres.ts'

const root = resolve(import.meta.dir, '../..')
const filesBelow = (folder: string) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md') && !name.includes('node_modules'))
    .map((name) => join(folder, name))
    .sort()
const guides = ['README.md', 'CONTRIBUTING.md', 'SECURITY.md', ...filesBelow('docs')]
const textOf = (file: string) => readFileSync(join(root, file), 'utf8')

interface Block {
  readonly language: string
  readonly text: string
  /** Of its first line, from 1. */
  readonly line: number
  /** The last line before it that is not empty. */
  readonly before: string
  /** Right after another block. */
  readonly follows: boolean
}

function blocksOf(markdown: string): Block[] {
  const blocks: Block[] = []
  let open: { language: string; start: number } | undefined
  let before = ''
  const lines = markdown.split('\n')
  for (const [index, line] of lines.entries()) {
    const fence = /^```(\w*)$/.exec(line)
    if (fence === null) {
      if (open === undefined && line !== '') before = line
      continue
    }
    if (open === undefined) {
      open = { language: fence[1] ?? '', start: index + 1 }
      continue
    }
    const text = `${lines.slice(open.start, index).join('\n')}\n`
    blocks.push({ language: open.language, text, line: open.start + 1, before, follows: before === '```' })
    open = undefined
    before = '```'
  }
  return blocks
}

interface Example {
  readonly script: string
  readonly line: number
  readonly exitCode: number
  /** What it prints; undefined where the document does not say. */
  readonly output: string | undefined
  readonly isRun: boolean
}

function examplesOf(markdown: string): Example[] {
  const blocks = blocksOf(markdown)
  return blocks.flatMap((block, index): Example[] => {
    const { language, text, line, before } = block
    const next = blocks[index + 1]
    const output = next?.language === 'text' && next.follows ? next.text : undefined
    const [, exitCode = '0'] = /^<!-- exit code (\d+) -->$/.exec(before) ?? []
    const [, file] = /`([\w/.-]+\.json)`:$/.exec(before) ?? []
    if (language === 'json' && file !== undefined) {
      const script = `mkdir -p ${dirname(file)}\ncat >${file} <<'END'\n${text}END\n`
      return [{ script, line, exitCode: 0, output: undefined, isRun: true }]
    }
    if (language !== 'sh') return []
    return [{ script: text, line, exitCode: Number(exitCode), output, isRun: !before.startsWith('<!-- not run: ') }]
  })
}

/** Servers run on, and what they need to be reached is known when the next line runs. */
const prelude = `
stop() { for one in \${servers-}; do kill "$one" && wait "$one" || true; done; servers=; }
trap stop EXIT
postern() {
  case "\${1-}" in serve | dev) ;; *) command postern "$@"; return ;; esac
  local before=\${kind-}
  case "$*" in *--replica*) kind=replica ;; *) kind= ;; esac
  if [ -z "$before" ] || [ -z "$kind" ]; then stop; fi
  exec {ready}< <(exec postern "$@" 2>server.log)
  servers="\${servers-} $!"
  while read -r line <&$ready; do case "$line" in 'postern listening on '*) return ;; esac; done
  cat server.log
  return 1
}
`

function scriptOf(examples: readonly Example[]): string {
  const steps = examples.map(({ script, exitCode }, index) =>
    exitCode === 0
      ? `echo ${index} >at\n{\n${script}} >out.${index} 2>&1\n`
      : `echo ${index} >at\ncode=0\n{\n${script}} >out.${index} 2>&1 || code=$?\n[ $code = ${exitCode} ]\n`,
  )
  return `set -eo pipefail\n${prelude}\n${steps.join('\n')}`
}

/** The ports that documents name. */
const namedPorts = ['8787', '8788', '8789', '9464']

/** Puts ports that are free in the place of those that documents name. */
async function portsHere(postgres: string | undefined): Promise<(text: string) => string> {
  const ports = new Map<string | undefined, string>(postgres === undefined ? [] : [['5432', new URL(postgres).port]])
  for (const name of namedPorts) ports.set(name, String(await freePort()))
  return (text) =>
    text.replaceAll(/(127\.0\.0\.1:|--port )(\d{4})\b/g, (all, before, port) =>
      ports.has(port) ? `${before}${ports.get(port)}` : all,
    )
}

/** A PostgreSQL as it is after its installation; its URL for the administrator. */
async function freshPostgres(): Promise<AsyncDisposable & { readonly url: string }> {
  const cluster = await startPostgres()
  const own = await cluster.newDatabase()
  const url = own.replace(/\/\/postern@(.*)\/.*/, '//postgres@$1/postgres')
  await cluster.query(own, 'CREATE ROLE postgres LOGIN SUPERUSER')
  await cluster.query(url, 'ALTER ROLE postern RENAME TO somebody')
  return { url, [Symbol.asyncDispose]: () => cluster.stop() }
}

function prepare({ folder }: Workplace): void {
  cpSync(sampleFolder, join(folder, 'fixtures'), { recursive: true })
  mkdirSync(join(folder, 'bin'))
  symlinkSync(executable, join(folder, 'bin/postern'))
}

/**
 * Documents show what people see on a terminal: tables with a heading. Here the commands write into a file, where those
 * that work over HTTP write the same rows without the heading, and with tabs between the columns.
 */
function patternOf(output: string): RegExp {
  const lines = output.trimEnd().split('\n')
  const escaped = lines.map((line) => {
    if (line === '…') return '(?:.*\\n)*?'
    const text = line.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&').replaceAll('…', '.*?')
    const row = `${text.replaceAll(/ {2,}/g, '[ \\t]+')}\\n?`
    return /^[A-Z]+(?: {2,}[A-Z][A-Z ]*)+$/.test(line) ? `(?:${row})?` : row
  })
  return new RegExp(`^${escaped.join('')}\\s*$`)
}

/** What each example printed, as far as they came. */
interface Ran {
  readonly code: number
  readonly stderr: string
  readonly printed: readonly string[]
}

async function runExamples({ folder }: Workplace, port: string, script: string): Promise<Ran> {
  const child = Bun.spawn(['bash', '-c', script], {
    cwd: folder,
    env: { PATH: `${join(folder, 'bin')}:${process.env['PATH']}`, HOME: folder, POSTERN_PORT: port },
    stdin: 'ignore',
    stdout: 'ignore',
    stderr: 'pipe',
    // Sooner than the test's own time: what the examples have started ends with them.
    timeout: 500_000,
  })
  const [stderr, code] = await Promise.all([new Response(child.stderr).text(), child.exited])
  const last = Number(readFileSync(join(folder, 'at'), 'utf8'))
  const printed = Array.from({ length: last + 1 }, (_, index) =>
    withoutProgress(readFileSync(join(folder, `out.${index}`), 'utf8')),
  )
  return { code, stderr, printed }
}

describe('examples', () => {
  for (const file of guides) {
    const examples = examplesOf(textOf(file)).filter(({ isRun }) => isRun)
    if (examples.length === 0) continue
    const needsPostgres = examples.some(({ script }) => script.includes('127.0.0.1:5432'))
    const runs = async () => {
      using place = workplace()
      await using postgres = needsPostgres ? await freshPostgres() : undefined
      prepare(place)
      const here = await portsHere(postgres?.url)
      const [, port = ''] = here('--port 8787').split(' ')
      const { code, stderr, printed } = await runExamples(place, port, here(scriptOf(examples)))
      for (const [index, { line, output }] of examples.slice(0, printed.length).entries()) {
        const example = { at: `${file}:${line}`, printed: printed[index] }
        const asShown =
          output === undefined ? expect.not.stringContaining('"error"') : expect.stringMatching(patternOf(here(output)))
        if (code !== 0 && index === printed.length - 1)
          expect({ ...example, code, stderr }).toEqual({ ...example, code: 0, stderr: '' })
        expect(example).toEqual({ ...example, printed: asShown })
      }
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    }
    if (needsPostgres)
      test.if(isHere('curl 7.82') && isHere('PostgreSQL'))(
        `${file} does what it says (needs curl 7.82 and PostgreSQL)`,
        runs,
      )
    else test.if(isHere('curl 7.82'))(`${file} does what it says (needs curl 7.82)`, runs)
  }

  test('most are run; those that are not say why', () => {
    const counts = guides.flatMap((file) => {
      const examples = examplesOf(textOf(file))
      const notRun = examples.filter(({ isRun }) => !isRun).length
      return examples.length === 0 ? [] : [[file, { run: examples.length - notRun, notRun }] as const]
    })
    expect(Object.fromEntries(counts)).toEqual({
      'CONTRIBUTING.md': { run: 0, notRun: 1 },
      'README.md': { run: 5, notRun: 2 },
      'docs/audit.md': { run: 5, notRun: 0 },
      'docs/company.md': { run: 18, notRun: 2 },
      'docs/connect-a-client.md': { run: 3, notRun: 3 },
      'docs/deployment.md': { run: 1, notRun: 7 },
      'docs/fixtures.md': { run: 8, notRun: 0 },
      'docs/http-api.md': { run: 18, notRun: 0 },
      'docs/mocks.md': { run: 2, notRun: 1 },
      'docs/offline.md': { run: 5, notRun: 4 },
      'docs/one-endpoint.md': { run: 7, notRun: 0 },
      'docs/operating.md': { run: 10, notRun: 1 },
      'docs/policy.md': { run: 14, notRun: 0 },
      'docs/replicas.md': { run: 11, notRun: 1 },
      'docs/sign-in.md': { run: 2, notRun: 1 },
      'docs/upgrade.md': { run: 0, notRun: 1 },
    })
  })

  test('a block says what it is: shell is `sh`, and never a block without a language', () => {
    for (const file of guides) {
      for (const { language, text, line } of blocksOf(textOf(file))) {
        expect({
          at: `${file}:${line}`,
          language: ['', 'sh', 'text', 'json', 'jsonc', 'ts'].includes(language),
        }).toMatchObject({
          language: true,
        })
        if (language !== 'sh')
          expect({ at: `${file}:${line}`, text }).toEqual({
            at: `${file}:${line}`,
            text: expect.not.stringMatching(/^(?:\$ |postern |curl |make )/m),
          })
        if (language === 'json') JSON.parse(text)
      }
    }
  })
})

test('the README fits on a few screens', () => {
  expect(textOf('README.md').split('\n').length).toBeLessThanOrEqual(161)
})
