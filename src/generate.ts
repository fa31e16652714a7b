/**
 * Writes the files that are made from the source: `bun src/generate.ts`. A test compares them with what
 * this would write.
 */

import { readFileSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { FixtureFile } from './fixtures/schema.ts'
import { openApiDocument } from './openapi/document.ts'

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

interface LockedPackage {
  readonly version: string
  readonly license?: string
  readonly dev?: boolean
  readonly optional?: boolean
  readonly os?: readonly string[]
}

/** The licences of what the executable holds, from the lockfile. */
export function thirdPartyLicences(): string {
  const lock = JSON.parse(readFileSync(resolve(import.meta.dir, '../package-lock.json'), 'utf8')) as {
    packages: Record<string, LockedPackage>
  }
  const shipped = Object.entries(lock.packages).filter(
    ([path, { dev, os }]) =>
      path !== '' && dev !== true && !path.includes('typescript') && (os === undefined || os.includes('linux')),
  )
  const rows = shipped.map(([path, { version, license }]) => {
    const name = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)
    return `| ${name} | ${version} | ${license ?? 'see its package'} |`
  })
  const bun = lock.packages['node_modules/bun']
  return [
    '# Licences of what the executable may hold',
    '',
    'Made from the lockfile by `make generated`; the licence texts are in the packages. LMDB itself, inside the',
    'package lmdb, is under the OpenLDAP Public License; the runtime names its own parts in its documentation.',
    '',
    '| Package | Version | Licence |',
    '|---|---|---|',
    `| bun (the runtime) | ${bun?.version} | ${bun?.license ?? 'MIT'} |`,
    ...[...new Set(rows)].sort(),
    '',
  ].join('\n')
}

export const generated: readonly (readonly [file: string, write: () => string])[] = [
  ['fixtures/fixtures.schema.json', fixturesSchema],
  ['test/openapi/openapi.json', openApi],
  ['THIRD-PARTY-LICENCES.md', thirdPartyLicences],
]

if (import.meta.main) {
  for (const [file, write] of generated) writeFileSync(resolve(import.meta.dir, '..', file), write())
}
