import { describe, expect, test } from 'bun:test'
import { readResults, writeResults } from './junit.ts'
import { verdictOf } from './verdict.ts'

const written = writeResults([
  { file: 'test/a.test.ts', title: 'passes', seconds: 1 },
  { file: 'test/a.test.ts', title: 'fails & "is" <told>', seconds: 1, failure: 'no' },
  { file: 'test/a.test.ts', title: 'is for another machine', seconds: 0, skipped: 'no strace' },
  { file: 'test/b.test.ts', title: 'passes', seconds: 0 },
])
const ofTheRunner = `
  <testcase name="one" classname="inner &gt; outer" time="0" file="test/a.test.ts" line="7" assertions="1" />
  <testcase name="two" classname="inner &gt; outer" time="0" file="test/a.test.ts" line="7" assertions="0">
    <skipped />
  </testcase>`
const threatOf = (...tests: string[]) => [{ row: 'K1', threat: 'x', tests }]
const ofTheRunnerOnly = (...tests: string[]) => verdictOf(threatOf(...tests), readResults(ofTheRunner), () => 'no zsh')

describe('results', () => {
  test('are read as they were written', () => {
    expect(readResults(written)).toEqual([
      { file: 'a.test.ts', title: 'passes', outcome: 'passed' },
      { file: 'a.test.ts', title: 'fails & "is" <told>', outcome: 'failed' },
      { file: 'a.test.ts', title: 'is for another machine', outcome: 'skipped', reason: 'no strace' },
      { file: 'b.test.ts', title: 'passes', outcome: 'passed' },
    ])
  })

  test('of the runner have the groups from the outside in', () => {
    expect(readResults(ofTheRunner)).toEqual([
      { file: 'a.test.ts', title: 'outer > inner > one', outcome: 'passed' },
      { file: 'a.test.ts', title: 'outer > inner > two', outcome: 'skipped' },
    ])
  })
})

describe('a threat', () => {
  test('names a test by its title, or by the end of its path', () => {
    for (const named of ['one', 'inner > one', 'outer > inner > one', 'outer > * > one', 'o*e']) {
      expect(ofTheRunnerOnly(`a.test.ts: ${named}`)).toMatchObject({ wrong: [], notLookedAt: [] })
    }
  })

  test('that names no test, a part of a title, or one of another file is wrong', () => {
    for (const named of ['a.test.ts: on', 'a.test.ts: ne', 'a.test.ts: inner', 'b.test.ts: one', 'a.test.ts: three*'])
      expect(ofTheRunnerOnly(named).wrong).toEqual([`K1 x: "${named}" did not run`])
  })

  test('that names two tests without saying so is wrong', () => {
    const twice = readResults(ofTheRunner.replace('two', 'one'))
    expect(verdictOf(threatOf('a.test.ts: one'), twice, () => 'no zsh').wrong).toEqual([
      'K1 x: "a.test.ts: one" is the title of 2 tests',
    ])
  })

  test('whose test failed is wrong, and one whose test was skipped is not looked at', () => {
    const named = 'a.test.ts: fails & "is" <told>'
    expect(verdictOf(threatOf(named), readResults(written)).wrong).toContain(`K1 x: "${named}" failed`)
    expect(ofTheRunnerOnly('a.test.ts: two')).toMatchObject({ wrong: [], notLookedAt: ['K1 x: "a.test.ts: two"'] })
    expect(ofTheRunnerOnly('a.test.ts: inner > *').notLookedAt).toEqual(['K1 x: "a.test.ts: inner > *"'])
  })
})

describe('what was skipped', () => {
  test('is told with its reason', () => {
    expect(ofTheRunnerOnly().skipped).toEqual(['a.test.ts: outer > inner > two: no zsh'])
    expect(verdictOf([], readResults(written)).skipped).toEqual(['a.test.ts: is for another machine: no strace'])
  })

  test('is wrong where nothing is missing', () => {
    const wrong = ['a.test.ts: outer > inner > two: was skipped, and could have been run']
    expect(verdictOf([], readResults(ofTheRunner)).wrong).toEqual(wrong)
    const needing = ofTheRunner.replace('"two"', '"two (needs bash)"')
    expect(verdictOf([], readResults(needing)).wrong).toHaveLength(1)
  })
})
