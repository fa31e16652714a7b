/** The packages in the executable, from the lockfile, and their licences. */

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

const root = resolve(import.meta.dir, '../..')

export interface LockedPackage {
  readonly name: string
  readonly version: string
  /** npm's integrity: `sha512-` and base64. */
  readonly integrity: string
  readonly license: string
  /** Where npm installs it, below the root. */
  readonly folder: string
  readonly dev?: boolean
  readonly os?: readonly string[]
}

function lockedPackages(): LockedPackage[] {
  const lockfile = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'))
  return Object.entries<LockedPackage>(lockfile.packages)
    .filter(([path]) => path !== '')
    .map(([path, entry]) => ({ ...entry, name: path.replace(/^.*node_modules\//, ''), folder: path }))
}

/** A locked package. Throws Error if the lockfile does not contain it. */
export function packageOf(name: string): LockedPackage {
  const found = lockedPackages().find((one) => one.name === name)
  if (found === undefined) throw new Error(`package-lock.json has no ${name}`)
  return found
}

/** All packages that an executable for any machine may contain, apart from the runtime. */
export function carriedPackages(): LockedPackage[] {
  const carried = lockedPackages().filter(
    // Skip packages that only provide types, and msgpackr's addon, which the build leaves out.
    ({ name, dev, os }) => dev !== true && os === undefined && !/typescript|msgpackr-extract/.test(name),
  )
  const byName = new Map(carried.map((one) => [`${one.name} ${one.version}`, one]))
  return [...byName.keys()].sort().map((key) => byName.get(key) as LockedPackage)
}

/** Libraries in C, inside the addon of LMDB. */
const inAddon: readonly (readonly [name: string, folder: string])[] = [
  ['LMDB', 'dependencies/lmdb/libraries/liblmdb'],
  ['LZ4', 'dependencies/lz4/lib'],
]

/** Each text once, below the names of all packages that have it. Throws Error for a package that is not installed. */
export function licenceTexts(): string {
  const places = carriedPackages().map(({ name, version, folder }) => [`${name} ${version}`, folder] as const)
  const lmdb = packageOf('lmdb').folder
  const namesByText = new Map<string, string[]>()
  for (const [name, folder] of [...places, ...inAddon.map(([name, below]) => [name, join(lmdb, below)] as const)])
    for (const text of textsIn(join(root, folder))) namesByText.getOrInsertComputed(text, () => []).push(name)
  return [...namesByText].map(([text, names]) => `${names.join(', ')}\n\n${text}\n`).join(`\n${'='.repeat(72)}\n\n`)
}

function textsIn(folder: string): string[] {
  if (!existsSync(folder)) throw new Error(`${folder} is not installed`)
  const files = readdirSync(folder).filter((file) => /^(?:licen[cs]e|copying|copyright|notice)/i.test(file))
  return files.sort().map((file) => readFileSync(join(folder, file), 'utf8').trim())
}
