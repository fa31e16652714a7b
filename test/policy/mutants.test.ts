/**
 * The policy with one thing in it turned around, many times: each of these must be told from the real one by the
 * table of decisions, of paths and patterns, or of filters. What nobody would notice, nobody would miss.
 */

import { expect, test } from 'bun:test'
import { copyOfTree, type Tree } from '../mutants/tree.ts'

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

const files = ['decide.ts', 'metadata.ts', 'rpc-match.ts', 'tools.ts'].map((name) => `src/policy/${name}`)
const tests = ['decide', 'decide-rpc', 'rpc-match', 'metadata'].map((name) => `test/policy/${name}.test.ts`)
const copyOfPolicy = () => copyOfTree(['src', 'test/policy', 'package.json', 'tsconfig.json'])

/** Throws where the tables do not hold as things are: that they then fail says nothing. */
async function survivorsIn(tree: Tree): Promise<{ count: number; survivors: string[] }> {
  const { outcome, output } = await tree.ask(tests)
  if (outcome !== 'passed') throw new Error(`the policy as it is does not pass:\n${output}`)
  const survivors: string[] = []
  let count = 0
  for (const file of files) {
    for (const { text, line, what } of mutantsOf(tree.read(file))) {
      count += 1
      const noticed = await tree.with(
        file,
        () => text,
        () => tree.ask(tests),
      )
      if (noticed.outcome === 'passed') survivors.push(`${file}:${line}: ${what}`)
    }
  }
  return { count, survivors }
}

test('every branch of the policy counts', async () => {
  using tree = copyOfPolicy()
  const { count, survivors } = await survivorsIn(tree)
  expect(count).toBeGreaterThan(30)
  expect(survivors).toEqual([])
}, 120_000)

test('nothing is said of the policy where its tables fail without a change, or cannot run', async () => {
  using tree = copyOfPolicy()
  const [file = ''] = files
  const broken = tree.with(
    file,
    (text) => text.replace(' === ', ' !== '),
    () => survivorsIn(tree),
  )
  await expect(broken).rejects.toThrow('the policy as it is does not pass')
  using empty = copyOfTree(['package.json'])
  await expect(survivorsIn(empty)).rejects.toThrow('the policy as it is does not pass')
})

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
