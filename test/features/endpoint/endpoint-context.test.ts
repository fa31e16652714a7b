/** Callers as views narrow them. */

import { heapStats } from 'bun:jsc'
import { expect, test } from 'bun:test'
import { narrowedBy } from '../../../src/features/endpoint/endpoint-context.ts'

test('a caller is the same object while it uses one view, and takes no memory for others', () => {
  const context = { caller: { blocks: [] } } as never
  const policy = Array.from({ length: 16 }, () => ({ operations: 'read' }))
  const views = Array.from({ length: 5000 }, (_, index) => ({ name: `v${index}`, policy }) as never)
  const [one, two] = views as [never, never]
  const first = narrowedBy(one, context).caller
  expect(first.blocks).toHaveLength(16)
  expect(narrowedBy(one, context).caller).toBe(first)
  expect(narrowedBy(two, context).caller).not.toBe(first)
  // The blocks of a view are made once.
  for (const view of views.slice(0, 1000)) narrowedBy(view, context)
  const used = () => heapStats().objectCount
  Bun.gc(true)
  const before = used()
  const callers = Array.from({ length: 20 }, () => ({ caller: { blocks: [] } }) as never)
  for (const caller of callers) for (const view of views.slice(0, 1000)) narrowedBy(view, caller)
  Bun.gc(true)
  expect(used() - before).toBeLessThan(1000)
  expect(callers).toHaveLength(20)
})
