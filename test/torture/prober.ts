import { join } from 'node:path'
import type { Server } from '../support/executable.ts'

/** Another process that asks a server for a path, over and over, while a trial does its worst. */
export class Prober implements Disposable {
  readonly #child
  readonly #lines

  constructor(server: Server, path: string, credential = '') {
    const { port } = new URL(server.url)
    this.#child = Bun.spawn(
      [process.execPath, join(import.meta.dir, 'prober-process.ts'), port, String(server.pid), path, credential],
      { stdin: 'pipe', stdout: 'pipe' },
    )
    this.#lines = this.#child.stdout.pipeThrough(new TextDecoderStream()).getReader()
  }

  /** The longest wait for an answer since the last call, in milliseconds, without what a busy machine adds. */
  async longestMs(): Promise<number> {
    this.#child.stdin.write('\n')
    return Number((await this.#lines.read()).value)
  }

  [Symbol.dispose](): void {
    this.#child.kill()
  }
}
