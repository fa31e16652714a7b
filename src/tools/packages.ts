/** The packages in the executable, from the lockfile. */

import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'

export interface LockedPackage {
  readonly name: string
  readonly version: string
  /** npm's integrity: `sha512-` and base64. */
  readonly integrity: string
  readonly license: string
}

interface LockfileEntry {
  readonly version: string
  readonly integrity: string
  readonly license?: string
  readonly dev?: boolean
  readonly os?: readonly string[]
}

function lockfile(): [name: string, entry: LockfileEntry][] {
  const { packages } = JSON.parse(readFileSync(resolve(import.meta.dir, '../../package-lock.json'), 'utf8')) as {
    packages: Record<string, LockfileEntry>
  }
  return Object.entries(packages)
    .filter(([path]) => path !== '')
    .map(([path, entry]) => [path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length), entry])
}

const locked = (name: string, { version, integrity, license }: LockfileEntry): LockedPackage => ({
  name,
  version,
  integrity,
  license: license ?? 'see its package',
})

/** A locked package. Throws Error if the lockfile does not contain it. */
export function packageOf(name: string): LockedPackage {
  const found = lockfile().find((one) => one[0] === name)
  if (found === undefined) throw new Error(`package-lock.json has no ${name}`)
  return locked(...found)
}

/** All packages that an executable for any machine may contain, apart from the runtime. */
export function carriedPackages(): LockedPackage[] {
  const carried = lockfile().filter(
    // Skip packages that only provide types, and msgpackr's addon, which the build leaves out.
    ([name, { dev, os }]) => dev !== true && os === undefined && !/typescript|msgpackr-extract/.test(name),
  )
  const names = new Map(carried.map(([name, entry]) => [`${name} ${entry.version}`, locked(name, entry)]))
  return [...names.keys()].sort().map((key) => names.get(key) as LockedPackage)
}
