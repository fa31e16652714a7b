/** npm packages: a small one with the command, and one with the executable for each target, as those of esbuild. */

import { chmodSync, cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { version } from '../version.ts'

const about = {
  version,
  description: 'An MCP gateway in one executable',
  license: 'MIT',
  engines: { node: '>=20' },
} as const

/** Where npm installs the package of a target. */
function machineOf(target: string): object {
  const [system = '', cpu, libc = 'glibc'] = target.split('-')
  if (system === 'linux') return { os: ['linux'], cpu: [cpu], libc: [libc] }
  return { os: [system === 'macos' ? 'darwin' : 'win32'], cpu: [cpu] }
}

const nameOf = (target: string) => `postern-${target}`

export function targetPackage(folder: string, target: string, executable: string, licences: readonly string[]): void {
  mkdirSync(join(folder, 'bin'), { recursive: true })
  const file = join(folder, 'bin', basename(executable))
  cpSync(executable, file)
  chmodSync(file, 0o755)
  for (const licence of licences) cpSync(licence, join(folder, basename(licence)))
  write(folder, { name: nameOf(target), ...about, ...machineOf(target) })
}

/** Makes the folder of the package with the command, for these targets. */
export function commandPackage(folder: string, targets: readonly string[], licences: readonly string[]): void {
  mkdirSync(join(folder, 'bin'), { recursive: true })
  writeFileSync(join(folder, 'bin/postern.js'), launcher, { mode: 0o755 })
  for (const licence of licences) cpSync(licence, join(folder, basename(licence)))
  writeFileSync(join(folder, 'README.md'), readme)
  write(folder, {
    name: 'postern',
    ...about,
    bin: { postern: 'bin/postern.js' },
    optionalDependencies: Object.fromEntries(targets.map((target) => [nameOf(target), version])),
  })
}

function write(folder: string, manifest: object): void {
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`)
}

/** For somebody who has the package alone: the documents are in the executable. */
const readme = `# postern

An MCP gateway in one executable. Clients reach MCP servers through it. It keeps the credentials of the servers, checks
each message against the policy of a token, and records the calls.

\`\`\`sh
npx postern dev       # a server with sample connections, in a temporary folder; it prints what to try next
npx postern docs      # the documents
npx postern --help    # all commands
\`\`\`

The same documents are at \`/docs\` of every server.
`

/**
 * Starts the executable of the package that npm has installed, which decides when both end: the handlers stand before
 * it does, so that no signal ends the launcher alone. SIGTERM is passed on. SIGINT and SIGHUP are not: a terminal sends
 * them to both, and the second of two signals would end the executable at once.
 */
const launcher = `#!/usr/bin/env node
'use strict'
const { spawn } = require('node:child_process')
const { constants } = require('node:os')

const system = { linux: 'linux', darwin: 'macos', win32: 'windows' }[process.platform] ?? process.platform
const ending = process.platform === 'win32' ? '.exe' : ''
const name = \`postern-\${system}-\${process.arch}\`

function executable() {
  for (const one of [name, \`\${name}-musl\`]) {
    try {
      return require.resolve(\`\${one}/bin/postern\${ending}\`)
    } catch {}
  }
  console.error(\`postern: the package \${name} is missing: install postern without --omit=optional, on a machine that it is made for\`)
  process.exit(1)
}

const file = executable()
process.on('SIGTERM', () => child.kill('SIGTERM'))
for (const signal of ['SIGINT', 'SIGHUP']) process.on(signal, () => {})
const child = spawn(file, process.argv.slice(2), { stdio: 'inherit' })
child.on('error', (error) => {
  console.error(\`postern: \${error.message}\`)
  process.exit(1)
})
child.on('exit', (code, signal) => process.exit(signal === null ? code : 128 + constants.signals[signal]))
`
