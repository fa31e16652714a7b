/**
 * The policy with one thing in it turned around, many times: each of these must be told from the real one by the
 * table of decisions, of paths and patterns, or of filters. What nobody would notice, nobody would miss.
 */

import { expect, test } from 'bun:test'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

const root = resolve(import.meta.dir, '../..')

/** What is turned around, and into what. Comparisons with undefined are how an absent field is told from a given one. */
const turns: readonly (readonly [from: RegExp, to: string])[] = [
  [/ === /g, ' !== '],
  [/ !== /g, ' === '],
  [/ && /g, ' || '],
  [/ \|\| /g, ' && '],
  [/\.some\(/g, '.every('],
  [/\.every\(/g, '.some('],
  [/\btrue\b/g, 'false'],
  [/\bfalse\b/g, 'true'],
]

const files = ['decide.ts', 'metadata.ts', 'rpc-match.ts', 'tools.ts']

test('every branch of the policy counts', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'postern-mutants-'))
  try {
    cpSync(join(root, 'src'), join(folder, 'src'), { recursive: true })
    cpSync(join(root, 'test/policy'), join(folder, 'test/policy'), { recursive: true })
    rmSync(join(folder, 'test/policy/mutants.test.ts'))
    for (const shared of ['node_modules', 'package.json', 'tsconfig.json'])
      symlinkSync(join(root, shared), join(folder, shared))
    const survivors: string[] = []
    let count = 0
    for (const file of files) {
      const path = join(folder, 'src/policy', file)
      const source = readFileSync(path, 'utf8')
      for (const mutant of mutantsOf(source)) {
        count += 1
        writeFileSync(path, mutant.text)
        const child = Bun.spawn(
          [process.execPath, 'test', '--bail', '--timeout', '3000', 'decide', 'rpc-match', 'metadata'],
          {
            cwd: folder,
            stdout: 'ignore',
            stderr: 'ignore',
          },
        )
        if ((await child.exited) === 0) survivors.push(`${file}:${mutant.line}: ${mutant.what}`)
      }
      writeFileSync(path, source)
    }
    expect(count).toBeGreaterThan(30)
    expect(survivors).toEqual([])
  } finally {
    rmSync(folder, { recursive: true })
  }
}, 120_000)

function* mutantsOf(source: string): Generator<{ text: string; line: number; what: string }> {
  for (const [from, to] of turns) {
    for (const match of source.matchAll(from)) {
      const line = source.slice(0, match.index).split('\n').length
      const lineText = source.split('\n')[line - 1] ?? ''
      if (/^\s*(\*|\/\/|\/\*)|\btype\b|interface/.test(lineText) || /readonly \w+: (true|false)/.test(lineText))
        continue
      yield {
        text: source.slice(0, match.index) + to + source.slice(match.index + match[0].length),
        line,
        what: `${match[0].trim()} to ${to.trim()}: ${lineText.trim()}`,
      }
    }
  }
}
