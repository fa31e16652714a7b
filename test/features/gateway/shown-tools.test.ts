/** Tools as the consent page shows them. */

import { expect, test } from 'bun:test'
import { claimOf } from '../../../src/features/gateway/tool-requests.ts'

test('a tool is shown with the beginning of its words, and what its server claims that it does', () => {
  const rows: [given: object, description: string, risk: string][] = [
    [{}, '', 'may change or delete data'],
    [{ description: ' Looks up. ', annotations: null }, 'Looks up.', 'may change or delete data'],
    [{ description: 5, annotations: { readOnlyHint: true } }, '', 'only reads'],
    [{ annotations: { readOnlyHint: 'yes', destructiveHint: false } }, '', 'changes data, and deletes none'],
    [{ annotations: { readOnlyHint: true, destructiveHint: true } }, '', 'only reads'],
    [{ description: 'x'.repeat(161) }, `${'x'.repeat(159)}…`, 'may change or delete data'],
  ]
  for (const [given, description, risk] of rows) expect(claimOf({ name: 'a', ...given })).toEqual({ description, risk })
})
