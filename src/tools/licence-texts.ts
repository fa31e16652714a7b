/** The texts of the licences of what an executable holds, as its packages bring them. */

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { carriedPackages, packageOf } from './packages.ts'

const root = resolve(import.meta.dir, '../..')

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
