/** Callers as views narrow them. */

import { heapStats } from 'bun:jsc'
import { expect, test } from 'bun:test'
import { createNarrowing } from '../../../src/features/endpoint/endpoint-context.ts'

test('a caller is the same object while it uses one view, and takes no memory for others', () => {
  const context = { caller: { blocks: [] } } as never
  const blocks = Array.from({ length: 16 }, () => ({ operations: ['read'] }))
  const views = Array.from({ length: 1000 }, (_, index) => ({ name: `v${index}`, blocks }) as never)
  const narrow = createNarrowing()
  const [one, two] = views as [never, never]
  const first = narrow(context, one).caller
  expect(first.blocks).toHaveLength(16)
  expect(narrow(context, one).caller).toBe(first)
  expect(narrow(context, two).caller).not.toBe(first)
  const used = () => heapStats().objectCount
  Bun.gc(true)
  const before = used()
  const callers = Array.from({ length: 20 }, () => ({ caller: { blocks: [] } }) as never)
  for (const caller of callers) for (const view of views) narrow(caller, view)
  Bun.gc(true)
  expect(used() - before).toBeLessThan(1000)
  expect(callers).toHaveLength(20)
})
