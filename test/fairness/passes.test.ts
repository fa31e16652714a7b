import { expect, test } from 'bun:test'
import { inPasses } from '../../src/fairness/passes.ts'
import { requestsPerPassMax } from '../../src/limits.ts'

const request = new Request('http://localhost/health')

test('requests past the bound are answered in the next pass, and those after it at once', async () => {
  const ends: (() => void)[] = []
  const endPass = () => {
    for (const run of ends.splice(0)) run()
  }
  let answered = 0
  const answer = inPasses(
    () => {
      answered += 1
      return new Response()
    },
    (run) => void ends.push(run),
  )
  const given = Array.from({ length: requestsPerPassMax + 3 }, () => answer(request))
  expect(given.filter((one) => one instanceof Promise)).toHaveLength(3)
  expect(answered).toBe(requestsPerPassMax)
  endPass()
  expect(answer(request)).toBeInstanceOf(Response)
  await Promise.all(given)
  expect(answered).toBe(requestsPerPassMax + 4)
})

test('passes with few requests each never reach the bound', () => {
  const ends: (() => void)[] = []
  const answer = inPasses(
    () => new Response(),
    (run) => void ends.push(run),
  )
  for (let i = 0; i < 3 * requestsPerPassMax; i += 1) {
    expect(answer(request)).toBeInstanceOf(Response)
    for (const run of ends.splice(0)) run()
  }
})
