/** Makes the parts that the endpoint of a namespace has besides those of the gateway. */

import type { Every } from '../gateway/open-streams.ts'
import { JoinedAnswers } from './joined-answers.ts'
import { KeptLists, type KeptListsDeps } from './kept-lists.ts'
import { ListChanges } from './list-changes.ts'
import { NarrowedCallers } from './narrowed-callers.ts'
import { ToolIndexes } from './tool-search.ts'

export function createEndpointParts(gateway: KeptListsDeps, every: Every) {
  const { store, clock } = gateway
  const kept = new KeptLists(gateway)
  return {
    kept,
    changes: new ListChanges(store, every),
    answers: new JoinedAnswers(store, kept, clock),
    indexes: new ToolIndexes(),
    narrowing: new NarrowedCallers(),
  }
}
