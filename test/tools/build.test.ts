/** The build: the same source gives the same bytes, wherever and under whichever name, so that anybody can check one. */

import { expect, test } from 'bun:test'
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { sha256 } from '../../src/tools/build.ts'
import { carriedPackages, licenceTexts, packageOf } from '../../src/tools/packages.ts'
import { sbom } from '../../src/tools/sbom.ts'
import { executable } from '../support/executable.ts'

const root = resolve(import.meta.dir, '../..')

test('built in another folder, under another name, the executable has the same bytes as the one that `make build` built', async () => {
  // On the same disk, so that what is installed need not be copied.
  const place = mkdtempSync(join(root, 'dist/build-test-'))
  try {
    for (const name of [
      'src',
      'docs',
      'deploy',
      'fixtures',
      ...['README.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'LICENSE', 'SECURITY.md', 'THIRD-PARTY-LICENCES.md'],
      'package.json',
      'package-lock.json',
      'tsconfig.json',
    ])
      cpSync(join(root, name), join(place, name), { recursive: true })
    expect(Bun.spawnSync(['cp', '-rl', join(root, 'node_modules'), place]).exitCode).toBe(0)
    const args = [process.execPath, 'src/tools/build.ts', 'out/the-other']
    const { exitCode, stderr } = Bun.spawnSync(args, { cwd: place })
    expect({ exitCode, stderr: stderr.toString() }).toEqual({ exitCode: 0, stderr: '' })
    expect(await sha256(join(place, 'out/the-other'))).toBe(await sha256(executable))
  } finally {
    rmSync(place, { recursive: true, force: true })
  }
})

test('the list of what it is made of has each package by name, version, digest and licence', () => {
  const packages = carriedPackages()
  const { metadata, components, dependencies } = JSON.parse(
    sbom('linux-x64', 'aa', [...packages, packageOf('@lmdb/lmdb-linux-x64')]),
  )
  expect(packages.length).toBeGreaterThan(40)
  expect(dependencies[0].dependsOn).toEqual(components.map((one: { purl: string }) => one.purl))
  const elysia = components.find(({ name }: { name: string }) => name === '@elysiajs/bearer')
  expect(elysia).toMatchObject({ version: '1.4.4', purl: 'pkg:npm/%40elysiajs/bearer@1.4.4' })
  for (const { hashes, licenses } of components) {
    expect(hashes[0].content).toMatch(/^[0-9a-f]{128}$/)
    expect(licenses[0].expression ?? licenses[0].license.id).toMatch(/^[A-Za-z0-9.-]+(?: AND OLDAP-2\.8)?$/)
  }
  expect(metadata.component.hashes).toEqual([{ alg: 'SHA-256', content: 'aa' }])
  expect(components.at(-1).licenses).toEqual([{ expression: 'MIT AND OLDAP-2.8' }])
})

/** Packages that bring no file with a licence: their `package.json` names it. */
const withoutText = new Set(['@tokenizer/token', 'weak-lru-cache'])

test('a release has the text of each licence once, that of LMDB among them', () => {
  const texts = licenceTexts()
  for (const words of ['OpenLDAP Public License', 'Blue Oak Model License', 'Apache License'])
    expect([words, texts.includes(words)]).toEqual([words, true])
  for (const { name, version } of carriedPackages())
    if (!withoutText.has(name)) expect([name, texts.includes(`${name} ${version}`)]).toEqual([name, true])
})

test('every package is held to a digest, and none runs anything when it is installed', () => {
  for (const folder of [root, join(root, 'test/bench')]) {
    const { packages } = JSON.parse(readFileSync(join(folder, 'package-lock.json'), 'utf8')) as {
      packages: Record<string, { readonly integrity?: string; readonly inBundle?: boolean }>
    }
    for (const [path, { integrity, inBundle }] of Object.entries(packages)) {
      if (path === '' || inBundle === true) continue
      expect({ path, integrity }).toEqual({ path, integrity: expect.stringMatching(/^sha512-[A-Za-z0-9+/]{86}==$/) })
    }
  }
  expect(readFileSync(join(root, '.npmrc'), 'utf8')).toContain('\nignore-scripts=true\n')
  for (const [line] of readFileSync(join(root, 'Makefile'), 'utf8').matchAll(/^\tcd .*npm install.*$/gm))
    expect(line).toContain('--ignore-scripts')
})
