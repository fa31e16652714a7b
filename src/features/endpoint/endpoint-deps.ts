/** The parts that the endpoint of a namespace is made of, besides those of the gateway. */

import type { Every } from '../gateway/open-streams.ts'
import { createNarrowing } from './endpoint-context.ts'
import { createJoinedAnswers } from './joined-answers.ts'
import { KeptLists, type KeptListsDeps } from './kept-lists.ts'
import { ListChanges } from './list-changes.ts'
import { ToolIndexes } from './tool-search.ts'
import { createUnderWay } from './under-way.ts'

export interface EndpointDeps extends KeptListsDeps, ReturnType<typeof createEndpointParts> {
  /** The base URL, without a slash at its end. */
  readonly base: string
  /** The `WWW-Authenticate` of a 401; undefined if clients cannot sign in here. */
  readonly challenge: ((request: Request) => string) | undefined
}

/** `sessionKey` seals what the platform gives to clients: session ids, and the ids of servers' requests. */
export function createEndpointParts(gateway: KeptListsDeps, every: Every, sessionKey: Buffer) {
  const { store, clock } = gateway
  const kept = new KeptLists(gateway)
  return {
    ...{ kept, sessionKey },
    underWay: createUnderWay(sessionKey),
    changes: new ListChanges(store, every),
    joinedAnswer: createJoinedAnswers(store, kept, clock),
    indexes: new ToolIndexes(),
    narrow: createNarrowing(),
  }
}
