/** What the lockfile says of the packages that the executable is made of. */

import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'

export interface LockedPackage {
  readonly name: string
  readonly version: string
  /** As npm writes it: `sha512-` and base64. */
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

/** Throws when the lockfile does not hold it. */
export function packageOf(name: string): LockedPackage {
  const found = lockfile().find((one) => one[0] === name)
  if (found === undefined) throw new Error(`package-lock.json has no ${name}`)
  return locked(...found)
}

/** Those that an executable may hold, whatever machine it is for. The runtime, which holds it, is not among them. */
export function carriedPackages(): LockedPackage[] {
  const carried = lockfile().filter(
    // What packages bring for their own types and, of msgpackr, an addon that is left out.
    ([name, { dev, os }]) => dev !== true && os === undefined && !/typescript|msgpackr-extract/.test(name),
  )
  const names = new Map(carried.map(([name, entry]) => [`${name} ${entry.version}`, locked(name, entry)]))
  return [...names.keys()].sort().map((key) => names.get(key) as LockedPackage)
}
