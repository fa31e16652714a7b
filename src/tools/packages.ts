/** The packages in the executable, from the lockfile. */

import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'

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
  const { packages } = JSON.parse(readFileSync(resolve(import.meta.dir, '../../package-lock.json'), 'utf8')) as {
    packages: Record<string, LockedPackage>
  }
  return Object.entries(packages)
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
