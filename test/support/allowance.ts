/** Requests for functions that expect one to come through the router. */

import { Allowance, openAllowance } from '../../src/fairness/allowance.ts'
import { createFairness } from '../../src/fairness/fairness.ts'
import type { Costs } from '../../src/operations.ts'

/** Opens an allowance for the request, of a platform of its own unless one is given. */
export function withAllowance(request: Request, costs: Partial<Costs> = {}, fairness = createFairness()): Request {
  const all: Costs = { bodyBytesMax: 65_536, bodyMsPerMegabyte: 0, reads: 'few', ...costs }
  openAllowance(request, new Allowance(fairness, request, () => '192.0.2.1', { costs: all }))
  return request
}
