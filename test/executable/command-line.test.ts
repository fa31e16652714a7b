/** What people type: spellings of the version, flags in the wrong place, `-` for a file, settings that are none. */

import { describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { executable, run, startServer, type Workplace, withoutProgress, workplace } from '../support/executable.ts'

describe('the command line', () => {
  test('tells its version however it is asked', async () => {
    using place = workplace()
    const version = await run(place, ['--version'])
    expect(version).toMatchObject({ code: 0, stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/), stderr: '' })
    for (const spelling of ['version', '-v', '--version']) expect(await run(place, [spelling])).toEqual(version)
  })

  test('says where a flag goes that stands before the command', async () => {
    using place = workplace()
    for (const [args, line] of [
      [['--data', 'x', 'serve'], 'flags come after the command: `postern serve --data …`\n'],
      [['--port=1', 'dev'], 'flags come after the command: `postern dev --port=1 …`\n'],
      [['--url', 'x', 'token', 'mint'], 'flags come after the command: `postern token mint --url …`\n'],
    ] as const) {
      expect(await run(place, args)).toEqual({ code: 2, stdout: '', stderr: line })
    }
  })

  test('says what is wrong in one way', async () => {
    using place = workplace()
    for (const args of [
      ['nope'],
      ['serve', '--nope'],
      ['keys', 'create'],
      ['help', 'nope'],
      ['serve', '--port', 'x'],
    ]) {
      const { code, stderr } = await run(place, args)
      expect({ args, code, stderr }).toEqual({ args, code: 2, stderr: expect.not.stringMatching(/^error/) })
    }
  })

  test('writes help as wide as it is told to', async () => {
    using place = workplace()
    const widest = async (COLUMNS: string) => {
      const { stdout } = await run(place, ['serve', '--help'], { COLUMNS })
      const [, options = ''] = /Options:\n([^]*?)\n\n/.exec(stdout) ?? []
      return Math.max(...options.split('\n').map((line) => line.length))
    }
    expect(await widest('90')).toBeLessThanOrEqual(90)
    expect(await widest('200')).toBeGreaterThan(100)
  })

  test('warns of a setting that is none, and of none that Kubernetes makes', async () => {
    using place = workplace()
    const env = { POSTERN_PROT: '1', POSTERN_COLOUR: '1', POSTERN_SERVICE_HOST: '10.0.0.1', POSTERN_PORT_80_TCP: 'x' }
    const server = await startServer(place, [], { env })
    await server.kill('SIGTERM')
    const warned = server
      .stderr()
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
      .filter(({ level }) => level === 'warn')
    expect(warned.map(({ event }) => event)).toEqual([
      'the environment variable POSTERN_PROT is not a setting; did you mean "POSTERN_PORT"?',
      'the environment variable POSTERN_COLOUR is not a setting',
    ])
  })
})

/** Runs it with these bytes on stdin. */
async function piped(place: Workplace, args: readonly string[], stdin: Uint8Array) {
  const child = Bun.spawn([executable, ...args], { cwd: place.folder, stdin, stdout: 'pipe', stderr: 'pipe' })
  const [stdout, stderr, code] = await Promise.all([
    new Response(child.stdout).bytes(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  return { stdout, stderr: withoutProgress(stderr), code }
}

/** As a shell has it: its pipes hold 64 kB. */
const inShell = (place: Workplace, script: string, ...args: readonly string[]) =>
  run(place, args, {}, ['bash', '-c', `set -o pipefail; ${script}`])

describe('more than a pipe holds', () => {
  test('reaches a reader that is slow, and nobody minds one that has had enough', async () => {
    using place = workplace()
    const connections = Array.from({ length: 2000 }, (_, at) => ({
      namespace: `missing-${at}`,
      connectionId: 'one',
      mcpUrl: 'https://mcp.example.com/mcp',
    }))
    writeFileSync(join(place.folder, 'all.json'), JSON.stringify({ connections }))
    const check = '"$0" check "$1" 2>&1 |'
    const slow = await inShell(place, `${check} { sleep 0.3; cat; }`, place.folder)
    expect(slow.stdout.length).toBeGreaterThan(100_000)
    expect(slow.stdout).toContain('missing-1999')
    expect(slow.code).toBe(1)
    expect(await inShell(place, `${check} head -1`, place.folder)).toMatchObject({ code: 1, stderr: '' })
  })

  test('goes into an export whose errors go the same way', async () => {
    using place = workplace()
    await (await startServer(place)).kill('SIGTERM')
    const exported = await inShell(place, '"$0" export --data "$1" 2>&1 | { sleep 0.3; cat; }', place.data)
    expect(exported.code).toBe(0)
    expect(exported.stdout.length).toBeGreaterThan(65_536)
    for (const line of exported.stdout.trim().split('\n')) JSON.parse(line)
    const dashed = await run(place, ['export', '-', '--data', place.data])
    expect({ ...dashed, files: readdirSync(place.folder) }).toEqual({ ...exported, files: ['data'] })
  })

  test('what cannot be written is told, and the exit code is 1', async () => {
    using place = workplace()
    expect(await inShell(place, '"$0" version > /dev/full')).toEqual({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(/^cannot write: ENOSPC/),
    })
  })
})

describe('- stands for stdin and stdout', () => {
  test('a backup, a restore and an import pass through pipes, and nothing is left in the folder for temporary files', async () => {
    using place = workplace()
    using temporary = workplace()
    await using server = await startServer(place)
    const env = { TMPDIR: temporary.folder }
    const listed = await run(place, ['keys', 'list', '--data', place.data])
    const child = Bun.spawn([executable, 'backup', '-', '--data', place.data], {
      env: { ...process.env, ...env },
      stdout: 'pipe',
      stderr: 'pipe',
    })
    const backup = await new Response(child.stdout).bytes()
    expect(await new Response(child.stderr).text()).toMatch(/^stdout holds the store of /)
    expect(await child.exited).toBe(0)
    const { stdout: exported } = await run(place, ['export', '--data', place.data])
    await server.kill('SIGTERM')

    const restored = join(place.folder, 'restored')
    const restore = await piped(place, ['restore', '-', '--data', restored], backup)
    expect({ code: restore.code, stderr: restore.stderr }).toEqual({ code: 0, stderr: '' })
    expect((await run(place, ['keys', 'list', '--data', restored])).stdout).toBe(listed.stdout)
    for (const name of ['-', '/dev/stdin']) {
      const imported = await piped(place, ['import', name, '--data', restored], Buffer.from(exported))
      expect({ name, code: imported.code, stdout: Buffer.from(imported.stdout).toString() }).toEqual({
        name,
        code: 0,
        stdout: expect.stringMatching(/^imported \d+ records\n$/),
      })
    }
    const cut = await piped(place, ['import', '-', '--data', restored], Buffer.from(exported.slice(0, -20)))
    expect({ code: cut.code, stderr: cut.stderr }).toEqual({ code: 1, stderr: expect.stringMatching(/^stdin:\d+: /) })
    expect(readdirSync(temporary.folder).filter((name) => name.startsWith('postern-stream'))).toEqual([])
  })

  test('a backup passes through the pipe of a shell, to a reader that is slow', async () => {
    using place = workplace()
    await (await startServer(place)).kill('SIGTERM')
    const copy = join(place.folder, 'copy')
    const script = '"$0" backup - --data "$1" | { sleep 0.2; "$0" restore - --data "$2"; }'
    expect(await inShell(place, script, place.data, copy)).toMatchObject({
      code: 0,
      // More than a pipe holds.
      stderr: expect.stringMatching(/^stdout holds the store of .* \((?:[7-9]\d|\d{3}) kB\)/),
    })
    const listed = await run(place, ['keys', 'list', '--data', place.data])
    expect(await run(place, ['keys', 'list', '--data', copy])).toEqual(listed)
  })

  test('what needs a folder for temporary files says so where there is none', async () => {
    using place = workplace()
    await (await startServer(place)).kill('SIGTERM')
    const TMPDIR = join(place.folder, 'missing')
    expect(await run(place, ['backup', '-', '--data', place.data], { TMPDIR })).toEqual({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(/^cannot create a temporary folder: ENOENT: .*; name another place with TMPDIR\n$/),
    })
  })

  test('a backup given to import, and an export given to restore, are told as what they are', async () => {
    using place = workplace()
    await (await startServer(place)).kill('SIGTERM')
    const [backup, exported] = [join(place.folder, 'a'), join(place.folder, 'b')]
    await run(place, ['backup', backup, '--data', place.data])
    await run(place, ['export', exported, '--data', place.data])
    const other = join(place.folder, 'other')
    expect(await run(place, ['import', backup, '--data', other])).toEqual({
      code: 1,
      stdout: '',
      stderr: `${backup} is not an export, but a backup: read it with \`postern restore\`\n`,
    })
    expect(await run(place, ['restore', exported, '--data', other])).toEqual({
      code: 1,
      stdout: '',
      stderr: `${exported} is not a backup, but an export: read it with \`postern import\`\n`,
    })
    expect((await piped(place, ['import', '-', '--data', other], readFileSync(backup))).stderr).toBe(
      'stdin is not an export, but a backup: read it with `postern restore`\n',
    )
    writeFileSync(backup, 'neither')
    expect((await run(place, ['restore', backup, '--data', other])).stderr).toContain('is not a backup of postern')
  })
})
