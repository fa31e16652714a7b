/**
 * Writes the files that are made from the source: `bun src/tools/generate.ts`. A test compares them with what
 * this would write.
 */

import { readFileSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { openApiDocument } from '../features/reference/document.ts'
import * as limits from '../limits.ts'
import { FixtureFile } from '../maintenance/seed/schema.ts'
import { carriedPackages, packageOf } from './packages.ts'

/** The fixtures' JSON Schema, for editors. */
export function fixturesSchema(): string {
  const schema = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'postern fixtures',
    description: 'Organizations, namespaces, API keys, servers and connections to load. See fixtures/README.md.',
    ...FixtureFile,
  }
  return `${JSON.stringify(schema, null, 2)}\n`
}

/** What `/openapi.json` answers: a change of the interface shows as a change of this file. */
export function openApi(): string {
  return `${JSON.stringify(openApiDocument('http://localhost:8787'), null, 2)}\n`
}

/** The bounds as a table, from their comments: where each comes from and why, and what happens past it. */
export function limitsTable(): string {
  const text = readFileSync(resolve(import.meta.dir, '../limits.ts'), 'utf8')
  const lines = [
    '# Every bound, its reason, and what happens past it',
    '',
    'Made from `limits.ts` by `make generated`.',
  ]
  for (const part of text.split(/^\/\/ /m).slice(1)) {
    const [heading = ''] = part.split('\n')
    lines.push('', `## ${heading}`, '', '| Bound | | From and why | Past it |', '|---|---|---|---|')
    for (const [, comment = '', name = ''] of part.matchAll(/\/\*\* (.*) \*\/\nexport const (\w+)/g)) {
      const [, why, past] = /^(.*?)\. (?:Past|Below|Within) it,?:? ?(.*)$/.exec(comment) ?? []
      if (why === undefined || past === undefined)
        throw new Error(`${name}: its comment does not say what happens past it`)
      lines.push(`| \`${name}\` | ${boundText(name)} | ${why} | ${past.replace(/\.$/, '')} |`)
    }
  }
  return `${lines.join('\n')}\n`
}

/** With the unit that the name ends with. */
function boundText(name: string): string {
  const value = (limits as Readonly<Record<string, number>>)[name] ?? Number.NaN
  const [unit = ''] = /Seconds|Ms|Bytes|Chars|$/.exec(name.replace(/(Max|Min|Default)$/, '').slice(-7)) ?? []
  if (unit === 'Bytes') return value >= 2 ** 20 ? `${value / 2 ** 20} MB` : `${value / 1024} kB`
  const words: Readonly<Record<string, string>> = { Seconds: ' s', Ms: ' ms', Chars: ' characters', '': '' }
  return `${value.toLocaleString('en')}${words[unit]}`
}

/** The licences of what the executable holds, from the lockfile. */
export function thirdPartyLicences(): string {
  const runtime = packageOf('bun')
  const rows = [{ ...runtime, name: 'bun (the runtime)' }, ...carriedPackages()]
  return [
    '# Licences of what the executable may hold',
    '',
    'Made from the lockfile by `make generated`; the licence texts are in the packages. LMDB itself, inside the',
    'native addon of each machine (a package @lmdb/…, MIT), is under the OpenLDAP Public License; the runtime names',
    'its own parts in its documentation.',
    '',
    '| Package | Version | Licence |',
    '|---|---|---|',
    ...rows.map(({ name, version, license }) => `| ${name} | ${version} | ${license} |`),
    '',
  ].join('\n')
}

export const generated: readonly (readonly [file: string, write: () => string])[] = [
  ['fixtures/fixtures.schema.json', fixturesSchema],
  ['test/features/reference/openapi.json', openApi],
  ['docs/limits.md', limitsTable],
  ['THIRD-PARTY-LICENCES.md', thirdPartyLicences],
]

if (import.meta.main) {
  for (const [file, write] of generated) writeFileSync(resolve(import.meta.dir, '../..', file), write())
}
