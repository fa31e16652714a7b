/**
 * What some tests need of the machine. Their titles end in `(needs …)`; where it is not here they are skipped, and the
 * end of `make test` says which and why (`test/results/`).
 */

import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { isPostgresInstalled } from './postgres.ts'

export const faketime = '/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1'
/** Debian's. Without windows the same browser takes half of the time. */
export const chromium = ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium'].find((path) => existsSync(path)) ?? ''
const root = resolve(import.meta.dir, '../..')
/** Of Wycheproof: not part of the repository. */
export const vectors = process.env['POSTERN_VECTORS'] ?? resolve(root, '../shared/vectors')

const isRoot = () => process.getuid?.() === 0
const succeeds = (...command: string[]) =>
  Bun.which(command[0] as string) !== null &&
  Bun.spawnSync(command, { stdout: 'ignore', stderr: 'ignore' }).exitCode === 0
/** A folder over `/`, in which nothing of the machine is changed. */
const overlay =
  'mount -t tmpfs tmpfs /mnt && mkdir /mnt/u /mnt/w /mnt/r && mount -t overlay -o lowerdir=/,upperdir=/mnt/u,workdir=/mnt/w overlay /mnt/r'
const cgroups = 'mount -t cgroup2 cgroup2 /mnt/r/sys'
const mount = ['mount', '-t', 'tmpfs', 'tmpfs', '/mnt']

const needs = {
  root: isRoot,
  'root that may mount': () => isRoot() && succeeds('unshare', '-m', ...mount),
  'root that may isolate': () => isRoot() && succeeds('unshare', '-mp', '-f', '--mount-proc', ...mount),
  'root that may start systemd': () =>
    isRoot() &&
    existsSync('/lib/systemd/systemd') &&
    succeeds('unshare', '-mpnC', '-f', 'sh', '-c', `${overlay} && ${cgroups}`),
  'root that may leave the network': () => isRoot() && succeeds('unshare', '-n', 'ip', 'link', 'set', 'lo', 'up'),
  'the vectors of Wycheproof': () => existsSync(vectors),
  glibc: () => process.platform === 'linux' && !existsSync('/etc/alpine-release'),
  libfaketime: () => existsSync(faketime),
  Chromium: () => chromium !== '',
  nginx: () => Bun.which('nginx') !== null,
  caddy: () => Bun.which('caddy') !== null,
  PostgreSQL: () => isPostgresInstalled,
  PgBouncer: () => isPostgresInstalled && existsSync('/usr/sbin/pgbouncer'),
  'dpkg-deb': () => Bun.which('dpkg-deb') !== null,
  'systemd-analyze': () => Bun.which('systemd-analyze') !== null,
  /** With `--json`. */
  'curl 7.82': () => succeeds('curl', '--json', '', '--version'),
  ss: () => process.platform === 'linux' && Bun.which('ss') !== null,
  bash: () => Bun.which('bash') !== null,
  zsh: () => Bun.which('zsh') !== null,
  fish: () => Bun.which('fish') !== null,
} as const satisfies Record<string, () => boolean>

export type Need = keyof typeof needs

export function isHere(need: Need): boolean {
  return needs[need]()
}

/** Of what a title says that its test needs, one after the other with `and`, the first that is not here. */
export function missingFor(title: string, isThere: (need: Need) => boolean = isHere): Need | undefined {
  const said = /\(needs ([^()]+)\)/.exec(title)?.[1]?.split(' and ') ?? []
  return said.find((need): need is Need => Object.hasOwn(needs, need) && !isThere(need as Need))
}
