/** A copy of the project in a temporary folder, to change it there and to ask its tests. */

import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

const root = resolve(import.meta.dir, '../..')

export type Outcome = 'passed' | 'failed' | 'too long'

export interface Asked {
  readonly outcome: Outcome
  readonly milliseconds: number
  readonly output: string
}

export interface AskOptions {
  readonly more?: readonly string[]
  readonly testTimeoutMs?: number
  readonly timeoutMs?: number
}

export interface Tree extends Disposable {
  readonly folder: string
  /** Runs the tests of these files, up to the first that fails, for so many milliseconds: one, and all of them. */
  ask(tests: readonly string[], options?: AskOptions): Promise<Asked>
  read(file: string): string
  /** Lets `act` see the file with other text in it, which is then as it was. */
  with<T>(file: string, change: (text: string) => string, act: () => Promise<T>): Promise<T>
}

/** `parts` are files and folders of the project; what is installed is shared with it. */
export function copyOfTree(parts: readonly string[]): Tree {
  const folder = mkdtempSync(join(tmpdir(), 'postern-mutants-'))
  // The user of PostgreSQL, which never runs as root, has its folders in here.
  chmodSync(folder, 0o711)
  for (const part of parts) {
    const filter = (path: string) => !path.endsWith('/node_modules')
    cpSync(join(root, part), join(folder, part), { recursive: true, filter })
  }
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  mkdirSync(join(folder, 'tmp'))

  return {
    folder,
    async ask(tests, { more = [], testTimeoutMs = 30_000, timeoutMs = 60_000 } = {}) {
      const from = performance.now()
      const child = Bun.spawn(
        // The paths begin with ./, or they would be patterns.
        [
          process.execPath,
          'test',
          '--bail',
          '--timeout',
          String(Math.ceil(testTimeoutMs)),
          ...more,
          ...tests.map((test) => `./${test}`),
        ],
        {
          cwd: folder,
          env: { PATH: process.env['PATH'], HOME: process.env['HOME'], TMPDIR: join(folder, 'tmp') },
          stdin: 'ignore',
          stdout: 'ignore',
          stderr: 'pipe',
          timeout: Math.ceil(timeoutMs),
          killSignal: 'SIGKILL',
        },
      )
      const [output, code] = await Promise.all([new Response(child.stderr).text(), child.exited])
      const milliseconds = performance.now() - from
      const outcome = code === 0 ? 'passed' : child.signalCode === 'SIGKILL' ? 'too long' : 'failed'
      return { outcome, milliseconds, output }
    },
    read: (file) => readFileSync(join(folder, file), 'utf8'),
    async with(file, change, act) {
      const path = join(folder, file)
      const text = readFileSync(path, 'utf8')
      writeFileSync(path, change(text))
      try {
        return await act()
      } finally {
        writeFileSync(path, text)
      }
    },
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  }
}
