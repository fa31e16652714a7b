/**
 * Builds the release: `bun src/tools/release.ts [TARGET…]`, into dist/release. For each target, an archive with the
 * executable, its bill of materials (CycloneDX), completions and the files for deployment; an npm package, and for some
 * a Debian package; the npm package with the command; and SHA256SUMS. Everything comes from npm packages, each checked
 * against the lockfile's digest.
 */

import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join, resolve } from 'node:path'
import { version } from '../version.ts'
import { build, sha256 } from './build.ts'
import { debianMachines, debianTree } from './debian-package.ts'
import { commandPackage, targetPackage } from './npm-packages.ts'
import { carriedPackages, type LockedPackage, licenceTexts, packageOf } from './packages.ts'
import { packDocuments } from './packed-documents.ts'
import { sbom } from './sbom.ts'

/** By target: the package of the runtime, the package of LMDB's addon, and the addon's file in it. */
const targets: readonly (readonly [name: string, runtime: string, addon: string, addonFile: string])[] = [
  ['linux-x64', '@oven/bun-linux-x64', '@lmdb/lmdb-linux-x64', 'node.napi.glibc.node'],
  ['linux-arm64', '@oven/bun-linux-aarch64', '@lmdb/lmdb-linux-arm64', 'node.napi.glibc.node'],
  ['linux-x64-musl', '@oven/bun-linux-x64-musl', '@lmdb/lmdb-linux-x64', 'node.napi.musl.node'],
  ['linux-arm64-musl', '@oven/bun-linux-aarch64-musl', '@lmdb/lmdb-linux-arm64', 'node.napi.musl.node'],
  ['macos-x64', '@oven/bun-darwin-x64', '@lmdb/lmdb-darwin-x64', 'node.napi.node'],
  ['macos-arm64', '@oven/bun-darwin-aarch64', '@lmdb/lmdb-darwin-arm64', 'node.napi.node'],
  ['windows-x64', '@oven/bun-windows-x64', '@lmdb/lmdb-win32-x64', 'node.napi.node'],
]

const root = resolve(import.meta.dir, '../..')
const out = join(root, 'dist/release')
const packages = join(root, 'dist/packages')

/** The folder of an unpacked package. npm downloads it unless it is present; its digest is checked in either case. */
function folderOf({ name, version, integrity }: LockedPackage): string {
  const folder = join(packages, `${name.replace('/', '-').replace('@', '')}-${version}`)
  const archive = `${folder}.tgz`
  mkdirSync(packages, { recursive: true })
  if (!existsSync(archive)) run(['npm', 'pack', '--silent', '--pack-destination', packages, `${name}@${version}`])
  const digest = new Bun.CryptoHasher('sha512').update(readFileSync(archive)).digest('base64')
  if (`sha512-${digest}` !== integrity) {
    rmSync(archive)
    throw new Error(`${name}@${version} is not what package-lock.json names: its SHA-512 is ${digest}`)
  }
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder)
  run(['tar', '-xzf', archive, '-C', folder, '--strip-components=1'])
  return folder
}

/** Builds all that a target has. Resolves with the names of the files. */
async function release([target, runtimeName, addonName, addonFile]: (typeof targets)[number]): Promise<string[]> {
  const [runtime, addon] = [packageOf(runtimeName), packageOf(addonName)]
  const name = `postern-${version}-${target}`
  const folder = join(out, name)
  mkdirSync(folder)
  const ending = target.startsWith('windows') ? '.exe' : ''
  const executable = join(folder, `postern${ending}`)
  const runtimeFile = join(folderOf(runtime), `bin/bun${ending}`)
  chmodSync(runtimeFile, 0o755)
  await build({
    outfile: executable,
    runtime: { file: runtimeFile, target: `bun-${target.replace('macos', 'darwin')}` },
    addon: join(folderOf(addon), addonFile),
  })
  packDocuments(root, folder, documents)
  cpSync(texts, join(folder, basename(texts)))
  const parts = [packageOf('bun'), runtime, addon, ...carriedPackages()]
  writeFileSync(join(folder, 'postern.cdx.json'), sbom(target, await sha256(executable), parts))
  mkdirSync(join(folder, 'completions'))
  for (const [shell, text] of Object.entries(completions))
    writeFileSync(join(folder, 'completions', `postern.${shell}`), text)
  // If the target's runtime is the one that runs this, try the executable; others can only be built.
  const isOfThisMachine = (await sha256(runtimeFile)) === (await sha256(process.execPath))
  const tried = isOfThisMachine ? tryOut(executable) : 'only built'
  const archive = `${name}.tar.gz`
  // Sorted names, no owner, no time: the same files give the same archive.
  const anonymous = ['--sort=name', '--mtime=@0', '--owner=0', '--group=0', '--numeric-owner', '--mode=u+rwX,go=rX']
  run(['bash', '-c', '"$@" | gzip -n9', 'bash', 'tar', ...anonymous, '-C', out, '-c', name], join(out, archive))
  const made = [archive, packed(`postern-${target}`, (tree) => targetPackage(tree, target, executable, licences))]
  const machine = debianMachines[target]
  if (machine !== undefined && Bun.which('dpkg-deb') !== null) made.push(debian(machine, executable))
  rmSync(folder, { recursive: true })
  for (const one of made) console.log(`${one}: ${tried}`)
  return made
}

/** An npm package of the tree that `make` makes. Returns the name of the file. */
function packed(name: string, make: (tree: string) => void): string {
  const tree = join(out, name)
  make(tree)
  run(['npm', 'pack', '--silent', '--ignore-scripts', '--pack-destination', out, tree])
  rmSync(tree, { recursive: true })
  return `${name}-${version}.tgz`
}

/** Returns the name of the file. The same content gives the same bytes. */
function debian(machine: string, executable: string): string {
  const tree = join(out, 'debian')
  const file = `postern_${version}_${machine}.deb`
  debianTree(tree, machine, { executable, deploy: join(root, 'deploy'), completions, papers: licences })
  run(['env', 'SOURCE_DATE_EPOCH=0', 'dpkg-deb', '--root-owner-group', '-Zxz', '-z1', '--build', tree, join(out, file)])
  rmSync(tree, { recursive: true })
  return file
}

/** Starts the executable, creates a store and verifies it: this covers the runtime, the addon and the disk. */
function tryOut(executable: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'postern-release-'))
  try {
    const data = join(folder, 'data')
    run([executable, 'keys', 'create', '--user', 'release', '--data', data])
    run([executable, 'verify', '--data', data])
    return 'built, and run: a store made and verified'
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Runs a command. Returns its output, or writes it to `file`. Throws Error if it fails. */
function run(command: string[], file?: string): string {
  const { exitCode, stdout, stderr } = Bun.spawnSync(command, {
    stdout: file === undefined ? 'pipe' : Bun.file(file),
    stderr: 'pipe',
  })
  if (exitCode !== 0) throw new Error(`${command.join(' ')} ended with ${exitCode}: ${stderr}`)
  return stdout?.toString() ?? ''
}

const texts = join(packages, 'LICENCE-TEXTS.txt')
const licences = [...['LICENSE', 'THIRD-PARTY-LICENCES.md'].map((file) => join(root, file)), texts]
const papers = ['LICENSE', 'THIRD-PARTY-LICENCES.md', 'README.md', 'CHANGELOG.md', 'SECURITY.md']
const documents = [...papers, 'docs', 'deploy', 'fixtures']
const completion = (shell: string) => run([process.execPath, join(root, 'src/main.ts'), 'completions', shell])
const completions = { bash: completion('bash'), zsh: completion('zsh'), fish: completion('fish') }
const chosen = targets.filter(([name]) => process.argv.length === 2 || process.argv.slice(2).includes(name))
rmSync(out, { recursive: true, force: true })
mkdirSync(out, { recursive: true })
mkdirSync(packages, { recursive: true })
writeFileSync(texts, licenceTexts())
const files: string[] = []
for (const target of chosen) files.push(...(await release(target)))
const names = chosen.map(([name]) => name)
files.push(packed('postern', (tree) => commandPackage(tree, names, licences)))
const sums = await Promise.all(files.map(async (file) => `${await sha256(join(out, file))}  ${file}\n`))
writeFileSync(join(out, 'SHA256SUMS'), sums.join(''))
