/** Writes the generated files: `bun src/tools/generate.ts`. A test compares them with what this would write. */

import { readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { openApiDocument } from '../features/reference/document.ts'
import * as limits from '../limits.ts'
import { FixtureFile } from '../maintenance/seed/fixture-schema.ts'
import { commandReference, settingsTable } from './command-help.ts'
import { carriedPackages, packageOf } from './packages.ts'

const root = resolve(import.meta.dir, '../..')

export function fixturesSchema(): string {
  const schema = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'postern fixtures',
    description: 'Organizations, namespaces, API keys, servers and connections to load. See docs/fixtures.md.',
    ...FixtureFile,
  }
  return `${JSON.stringify(schema, null, 2)}\n`
}

/** The content of `/openapi.json`: a change of the interface shows as a change of this file. */
export function openApi(): string {
  return `${JSON.stringify(openApiDocument('http://localhost:8787'), null, 2)}\n`
}

/** The bounds as tables, from their comments: first those of limits.ts. Throws Error for one without "Past it". */
function limitsTable(): string {
  const source = resolve(import.meta.dir, '..')
  const [, ...parts] = readFileSync(join(source, 'limits.ts'), 'utf8').split(/^\/\/ /m)
  const shared = parts.map((part) => boundsTable(part.split('\n')[0] ?? '', part))
  const files = [...new Bun.Glob('**/*.ts').scanSync(source)].filter((file) => file !== 'limits.ts').sort()
  const others = files.map((file) => readFileSync(join(source, file), 'utf8')).join('\n')
  return [...shared, boundsTable('Bounds of single parts', others)].join('\n').trim()
}

function boundsTable(heading: string, source: string): string {
  const rows: string[] = []
  const bounds = source.matchAll(
    /^\/\*\* ((?:Ours|Spec|Contract|Storage)\b.*) \*\/\n(?:export )?const (\w+) = ((?:[a-z\d]|[kM]B).*)$/gm,
  )
  for (const [, comment = '', name = '', value = ''] of bounds) {
    const [, why, past] = /^(.*?)\. (?:Past|Below|Within) it,?:? ?(.*)$/.exec(comment) ?? []
    if (why === undefined || past === undefined)
      throw new Error(`${name}: its comment does not say what happens past it`)
    // Users need not know which contract a bound comes from.
    const reason = why.replace(/^[^:]*: /, '')
    rows.push(`| \`${name}\` | ${boundText(name, value)} | ${reason} | ${past.replace(/\.$/, '')} |`)
  }
  if (rows.length === 0) return ''
  return ['', `### ${heading}`, '', '| Limit | | What and why | Past it |', '|---|---|---|---|', ...rows].join('\n')
}

/** The value with the unit at the end of its name. `written`: in the source, a product of numbers outside limits.ts. */
function boundText(name: string, written: string): string {
  const powers = written.replaceAll('_', '').split(/(?<!\*)\*(?!\*)/)
  const factors = powers.map((power) =>
    power
      .split('**')
      .map(Number)
      .reduce((base, exponent) => base ** exponent),
  )
  const product = factors.reduce((value, factor) => value * factor, 1)
  const value = (limits as Readonly<Record<string, number>>)[name] ?? product
  const [unit = ''] = /Seconds|Ms|Bytes|Chars|$/.exec(name.replace(/(Max|Min|Default)$/, '').slice(-7)) ?? []
  if (unit === 'Bytes' && value % 1024 !== 0) return `${value.toLocaleString('en')} bytes`
  if (unit === 'Bytes') return value >= 2 ** 20 ? `${value / 2 ** 20} MB` : `${value / 1024} kB`
  const words: Readonly<Record<string, string>> = { Seconds: ' s', Ms: ' ms', Chars: ' characters', '': '' }
  return `${value.toLocaleString('en')}${words[unit]}`
}

/** The licences of everything in the executable, from the lockfile. */
export function thirdPartyLicences(): string {
  const runtime = packageOf('bun')
  const rows = [{ ...runtime, name: 'bun (the runtime)' }, ...carriedPackages()]
  return [
    '# Licences of what the executable may hold',
    '',
    'Made from the lockfile by `make generated`. A release has the texts in `LICENCE-TEXTS.txt`. LMDB itself, inside the',
    'native addon of each machine (a package @lmdb/…, MIT), is under the OpenLDAP Public License; the runtime names',
    'its own parts in its documentation.',
    '',
    '| Package | Version | Licence |',
    '|---|---|---|',
    ...rows.map(({ name, version, license }) => `| ${name} | ${version} | ${license} |`),
    '',
  ].join('\n')
}

/** A document with generated regions. Writing it throws Error if a region is missing. */
function page(file: string, regions: Readonly<Record<string, () => string>>): [file: string, write: () => string] {
  return [file, () => fillRegions(file, regions)]
}

function fillRegions(file: string, regions: Readonly<Record<string, () => string>>): string {
  let text = readFileSync(resolve(root, file), 'utf8')
  for (const [name, write] of Object.entries(regions)) {
    const [start, end] = [`<!-- generated: ${name} -->\n`, '<!-- /generated -->']
    const from = text.indexOf(start) + start.length
    const to = text.indexOf(end, from)
    if (from < start.length || to < 0) throw new Error(`${file}: has no region ${name}`)
    text = `${text.slice(0, from)}\n${write()}\n\n${text.slice(to)}`
  }
  return text
}

interface Threat {
  readonly row: string
  readonly threat: string
  readonly control: string
  readonly tests: readonly string[]
  /** More that a user should know. */
  readonly choice?: string
  /** Limits of the tests. */
  readonly tested?: string
}

/** Headings, by the first letter of a threat's number. */
const threatHeadings: Readonly<Record<string, string>> = {
  K: 'Keys and secrets',
  T: 'Tokens',
  L: 'Lists and records',
  R: 'Rules on MCP requests',
  C: 'Directory and record of calls',
  D: 'Availability',
  F: 'Files and terminals',
  S: 'Sign-in',
  P: 'Replicas on a database',
  E: 'The endpoint of a namespace',
}

const threats = JSON.parse(readFileSync(resolve(root, 'test/threats.json'), 'utf8')) as readonly Threat[]

/** The threats of `test/threats.json`, each with its control. */
function threatTables(): string {
  return threatTablesOf('| | Threat | Control |\n|---|---|---|', ({ row, threat, control, choice }) => {
    return `| ${row} | ${threat} | ${control}${choice === undefined ? '' : ` ${choice}`} |`
  })
}

/** The same threats, each with the files of its tests, as links of `docs/internals`. */
function threatTestTables(): string {
  const tables = threatTablesOf('| | Threat | Tests |\n|---|---|---|', ({ row, threat, tests, tested }) => {
    const files = [...new Set(tests.map((named) => named.split(': ')[0] ?? ''))]
    const links = files.map((file) => `[${file.replace(/\.test\.ts$/, '')}](../../test/${file})`)
    return `| ${row} | ${threat} | ${links.join(', ')}${tested === undefined ? '' : `. ${tested}`} |`
  })
  return `Made from [test/threats.json](../../test/threats.json), which names each test.\n\n${tables}`
}

function threatTablesOf(head: string, rowOf: (threat: Threat) => string): string {
  const unknown = threats.find(({ row }) => !(row.charAt(0) in threatHeadings))
  if (unknown !== undefined) throw new Error(`${unknown.row}: no heading for threats of this letter`)
  const tables = Object.entries(threatHeadings).map(([letter, heading]) => {
    const rows = threats.filter(({ row }) => row.startsWith(letter)).map(rowOf)
    return [`### ${heading}`, '', head, ...rows].join('\n')
  })
  return tables.join('\n\n')
}

export const generated: readonly (readonly [file: string, write: () => string])[] = [
  ['fixtures/fixtures.schema.json', fixturesSchema],
  ['docs/openapi.json', openApi],
  page('docs/limits.md', { bounds: limitsTable }),
  page('docs/configuration.md', { serve: settingsTable, commands: commandReference }),
  page('docs/trust.md', { threats: threatTables }),
  page('docs/internals/evidence.md', { 'threat-tests': threatTestTables }),
  ['THIRD-PARTY-LICENCES.md', thirdPartyLicences],
]

if (import.meta.main) {
  for (const [file, write] of generated) writeFileSync(resolve(root, file), write())
}
