import { describe, expect, test } from 'bun:test'
import { missingFor } from '../support/needs.ts'
import { readResults, writeResults } from './junit.ts'
import { verdictOf, verdictText } from './verdict.ts'

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
const stage = (text: string, code = 0) => ({ name: 'tests', code, results: readResults(text) })
const ofTheRunnerOnly = (...tests: string[]) => verdictOf(threatOf(...tests), [stage(ofTheRunner)], () => 'no zsh')

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

  test('of the runner are without the hooks of a group that was skipped, and with one that failed', () => {
    const hook = (inner: string) =>
      `<testcase name="(unnamed)" classname="outer" time="0." file="test/a.test.ts" assertions="0">${inner}</testcase>`
    expect(readResults(hook('<skipped />') + hook('<failure />'))).toEqual([
      { file: 'a.test.ts', title: 'outer > (unnamed)', outcome: 'failed' },
    ])
  })
})

describe('a threat', () => {
  test('names a test by its title, or by the end of its path', () => {
    for (const named of ['one', 'inner > one', 'outer > inner > one', 'outer > * > one', 'o*e']) {
      expect(ofTheRunnerOnly(`a.test.ts: ${named}`)).toMatchObject({ failed: [], notLookedAt: [] })
    }
  })

  test('that names no test, a part of a title, or one of another file is wrong', () => {
    for (const named of ['a.test.ts: on', 'a.test.ts: ne', 'a.test.ts: inner', 'b.test.ts: one', 'a.test.ts: three*'])
      expect(ofTheRunnerOnly(named).failed).toEqual([`K1 x: "${named}" did not run`])
  })

  test('that names two tests without saying so is wrong', () => {
    const twice = stage(ofTheRunner.replace('two', 'one'))
    const { failed } = verdictOf(threatOf('a.test.ts: one'), [twice], () => 'no zsh')
    expect(failed).toEqual(['K1 x: "a.test.ts: one" is the title of 2 tests'])
  })

  test('is shown by the first of two stages that run its test', () => {
    const both = [stage(ofTheRunner), { ...stage(ofTheRunner), name: 'tests again' }]
    expect(verdictOf(threatOf('a.test.ts: one'), both, () => 'no zsh').failed).toEqual([])
  })

  test('whose test was skipped is not looked at, and one whose test failed is not told again', () => {
    const named = 'a.test.ts: fails & "is" <told>'
    expect(verdictOf(threatOf(named), [stage(written, 1)]).failed).toEqual([`tests: ${named}`])
    expect(ofTheRunnerOnly('a.test.ts: two')).toMatchObject({ failed: [], notLookedAt: ['K1'] })
    expect(ofTheRunnerOnly('a.test.ts: inner > *').notLookedAt).toEqual(['K1'])
  })
})

describe('what was skipped', () => {
  test('is counted by its reason', () => {
    expect(ofTheRunnerOnly().skipped).toEqual(new Map([['no zsh', 1]]))
    expect(verdictOf([], [stage(written), stage(written)]).skipped).toEqual(new Map([['no strace', 2]]))
  })

  test('has failed where nothing is missing', () => {
    const failed = ['tests: a.test.ts: outer > inner > two: was skipped, and could have been run']
    expect(verdictOf([], [stage(ofTheRunner)]).failed).toEqual(failed)
    const needing = ofTheRunner.replace('"two"', '"two (needs bash)"')
    expect(verdictOf([], [stage(needing)]).failed).toHaveLength(1)
  })

  test('of two things has its reason where one of them is missing', () => {
    const missing = (...absent: string[]) => missingFor('two (needs bash and zsh)', (need) => !absent.includes(need))
    expect([missing(), missing('zsh'), missing('zsh', 'bash')]).toEqual([undefined, 'zsh', 'bash'])
  })
})

describe('a stage', () => {
  test('without tests is one itself', () => {
    const { passed, failed } = verdictOf(
      [],
      [
        { name: 'types', code: 0 },
        { name: 'style', code: 1 },
      ],
    )
    expect([passed, failed]).toEqual([1, ['style: ended with 1; its output says why']])
  })

  test('that ran no test has failed, and no threat is told because of it', () => {
    const ended = [{ name: 'tests', code: 0, results: [] }]
    expect(verdictOf(threatOf('a.test.ts: one'), ended).failed).toEqual(['tests: ended with 0, and no test ran'])
  })

  test('that failed, and whose tests passed, has failed', () => {
    const one = ofTheRunner.replace(/<testcase name="two"[^]*$/, '')
    expect(verdictOf([], [stage(one, 1)]).failed).toEqual(['tests: ended with 1; its output says why'])
  })
})

test('the last line has the numbers, and the lines before it have the reasons and what failed', () => {
  expect(
    verdictText(verdictOf(threatOf('a.test.ts: is for another machine'), [stage(written, 1)])).split('\n'),
  ).toEqual([
    '',
    'skipped: 1, because no strace',
    'threats with a test that was skipped: K1',
    'failed: tests: a.test.ts: fails & "is" <told>',
    '2 passed, 1 failed, 1 skipped',
  ])
  expect(verdictText(verdictOf([], [{ name: 'types', code: 0 }]))).toBe('\n1 passed, 0 failed')
})
