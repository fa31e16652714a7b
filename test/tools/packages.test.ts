/** The npm packages and the Debian package that a release has, around a program that stands for the executable. */

import { expect, test } from 'bun:test'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { debianTree } from '../../src/tools/debian-package.ts'
import { commandPackage, targetPackage } from '../../src/tools/npm-packages.ts'
import { packDocuments } from '../../src/tools/packed-documents.ts'
import { isHere } from '../support/needs.ts'
import { workplace } from '../support/workplace.ts'

const root = resolve(import.meta.dir, '../..')
const licences = ['LICENSE', 'THIRD-PARTY-LICENCES.md'].map((file) => join(root, file))
const target = `${process.platform === 'darwin' ? 'macos' : process.platform}-${process.arch}`

function script(folder: string, text: string): string {
  mkdirSync(folder, { recursive: true })
  const file = join(folder, 'postern')
  writeFileSync(file, `#!/bin/sh\n${text}\n`)
  chmodSync(file, 0o755)
  return file
}

test('the npm command runs the executable of its target, with its exit code and signals, and runs no install script', async () => {
  using place = workplace()
  const modules = join(place.folder, 'node_modules')
  const said = `case $1 in
wait) trap "exit 7" TERM; echo ready; sleep 60 >&2 & wait ;;
count) n=0; trap 'n=$((n + 1)); echo interrupted' INT; trap 'exit $n' TERM; echo ready; sleep 60 >&2 & wait; wait; wait ;;
*) echo "$@" ;;
esac; exit 3`
  targetPackage(join(modules, `postern-${target}`), target, script(place.folder, said), licences)
  commandPackage(join(modules, 'postern'), [target], licences)
  const launcher = join(modules, 'postern/bin/postern.js')
  for (const name of ['postern', `postern-${target}`]) {
    const manifest = JSON.parse(readFileSync(join(modules, name, 'package.json'), 'utf8'))
    expect({ name, ...manifest }).toMatchObject({ name, version: '0.1.0' })
    expect(manifest).not.toHaveProperty('scripts')
  }
  const ran = Bun.spawnSync(['node', launcher, 'a', 'b c'])
  expect({ code: ran.exitCode, stdout: ran.stdout.toString() }).toEqual({ code: 3, stdout: 'a b c\n' })

  const waiting = Bun.spawn(['node', launcher, 'wait'], { stdout: 'pipe' })
  for await (const bytes of waiting.stdout) if (Buffer.from(bytes).toString().includes('ready')) break
  waiting.kill('SIGTERM')
  expect(await waiting.exited).toBe(7)

  // A terminal sends SIGINT to both: the child gets it once, and says how often when it ends.
  const asked = Bun.spawn(['setsid', 'node', launcher, 'count'], { stdout: 'pipe' })
  let printed = ''
  for await (const bytes of asked.stdout) {
    printed += Buffer.from(bytes).toString()
    if (printed === 'ready\n') process.kill(-asked.pid, 'SIGINT')
    if (printed === 'ready\ninterrupted\n') asked.kill('SIGTERM')
  }
  expect({ code: await asked.exited, printed }).toEqual({ code: 1, printed: 'ready\ninterrupted\n' })

  // A signal that arrives while the child is being started reaches the child too.
  const early = join(place.folder, 'early.cjs')
  writeFileSync(
    early,
    `const processes = require('node:child_process'), { spawn } = processes
processes.spawn = (...args) => { const child = spawn(...args); process.kill(process.pid, 'SIGTERM'); return child }`,
  )
  const interrupted = Bun.spawn(['node', '--require', early, launcher, 'wait'], { stdout: 'ignore' })
  expect([7, 143]).toContain(await interrupted.exited)
  expect(interrupted.signalCode).toBeNull()

  rmSync(join(modules, `postern-${target}`), { recursive: true })
  const missing = Bun.spawnSync(['node', launcher])
  expect(missing.exitCode).toBe(1)
  expect(missing.stderr.toString()).toContain(`the package postern-${target} is missing`)
})

test.if(isHere('dpkg-deb'))(
  'the Debian package has the unit, the user, the settings, and nothing of its maker (needs dpkg-deb)',
  () => {
    using place = workplace()
    const tree = join(place.folder, 'tree')
    const executable = script(place.folder, 'exit 0')
    const completions = { bash: 'b', zsh: 'z', fish: 'f' }
    process.umask(0o077)
    debianTree(tree, 'amd64', { executable, deploy: join(root, 'deploy'), completions, papers: licences })
    const unit = readFileSync(join(tree, 'lib/systemd/system/postern.service'), 'utf8')
    expect(unit).toContain('ExecStart=/usr/bin/postern serve\n')
    expect(statSync(join(tree, 'etc/postern/environment')).mode & 0o777).toBe(0o640)
    for (const name of ['postinst', 'prerm', 'postrm'])
      expect(Bun.spawnSync(['sh', '-n', join(tree, 'DEBIAN', name)]).exitCode).toBe(0)
    const file = join(place.folder, 'postern.deb')
    expect(Bun.spawnSync(['dpkg-deb', '--root-owner-group', '--build', tree, file]).exitCode).toBe(0)
    const field = Bun.spawnSync(['dpkg-deb', '--field', file, 'Package', 'Version', 'Architecture']).stdout.toString()
    expect(field).toBe('Package: postern\nVersion: 0.1.0\nArchitecture: amd64\n')
    const lines = Bun.spawnSync(['dpkg-deb', '--contents', file]).stdout.toString().trim().split('\n')
    for (const line of lines) expect(line).toMatch(/^[d-]rw(?:xr-xr-x|-r--r--|-r-----) root\/root /)
  },
)

test('a link of a packed document leads to a file of the package, or is its text', () => {
  using place = workplace()
  const { folder } = place
  packDocuments(root, folder, ['README.md', 'SECURITY.md', 'docs', 'deploy', 'fixtures'])
  const documents = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.md'))
  expect(documents.length).toBeGreaterThan(25)
  const textOf = (name: string) => readFileSync(join(folder, name), 'utf8')
  const links = documents.flatMap((name) =>
    [...textOf(name).matchAll(/\]\((?!https?:|#)([^)#]+)/g)].map(([, path = '']) => join(dirname(name), path)),
  )
  expect(links.length).toBeGreaterThan(200)
  expect(links.filter((path) => !existsSync(join(folder, path)))).toEqual([])
  expect(textOf('SECURITY.md')).toContain('lists the promises, and every threat with its control. Evidence has')
  const codeOf = (text: string) => text.match(/^```[^]*?^```$/gm)
  expect(codeOf(textOf('README.md'))).toEqual(codeOf(readFileSync(join(root, 'README.md'), 'utf8')))
})
