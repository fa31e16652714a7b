/** The npm packages with the executable: installed from files, with no network and no install script, and run by npx. */

import { expect, test } from 'bun:test'
import { mkdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { commandPackage, targetPackage } from '../../src/tools/npm-packages.ts'
import { executable, workplace } from '../support/executable.ts'
import { until } from '../support/until.ts'

const licences = [resolve(import.meta.dir, '../../LICENSE')]
const target = `${process.platform}-${process.arch}`

test('npx runs postern from the packages, which npm installs offline and without scripts', async () => {
  using place = workplace()
  const environment = { PATH: process.env['PATH'] ?? '', HOME: place.folder }
  // Without compression, which would take longest.
  const packed = (name: string) => {
    const file = join(place.folder, `${name}.tgz`)
    expect(Bun.spawnSync(['tar', '-C', join(place.folder, name), '-cf', file, 'package']).exitCode).toBe(0)
    return file
  }
  targetPackage(join(place.folder, 'target/package'), target, executable, licences)
  commandPackage(join(place.folder, 'command/package'), [target], licences)
  const cwd = join(place.folder, 'empty')
  mkdirSync(cwd)
  const flags = ['--offline', '--ignore-scripts', '--no-audit', '--no-fund']
  const files = [packed('command'), packed('target')]
  const installed = Bun.spawnSync(['npm', 'install', ...flags, ...files], { cwd, env: environment })
  expect({ code: installed.exitCode, stderr: installed.stderr.toString() }).toMatchObject({ code: 0 })
  const dev = Bun.spawn(['setsid', 'npx', '--offline', 'postern', 'dev', '--port', '0'], {
    cwd,
    env: environment,
    stdout: 'pipe',
    stderr: 'ignore',
  })
  let printed = ''
  const reading = (async () => {
    for await (const bytes of dev.stdout) printed += Buffer.from(bytes).toString()
  })()
  await until(async () => /^postern listening on (\S+)$/m.test(printed))
  const [, url] = /^postern listening on (\S+)$/m.exec(printed) ?? []
  const health = Bun.spawnSync(['npx', '--offline', 'postern', 'health', url ?? ''], { cwd, env: environment })
  expect(health.stdout.toString()).toBe(`${url} answers\n`)
  // To all of its group, as a terminal does: npx passes no signal on.
  process.kill(-dev.pid, 'SIGINT')
  await dev.exited
  await reading
  expect(printed).toEndWith('Stopped. The temporary store is deleted.\n')
})
