/** The parts that the endpoint of a namespace is made of. `app.ts` makes them. */

import type { JoinedAnswers } from './joined-answers.ts'
import type { KeptLists, KeptListsDeps } from './kept-lists.ts'
import type { ListChanges } from './list-changes.ts'
import type { NarrowedCallers } from './narrowed-callers.ts'
import type { ToolIndexes } from './tool-search.ts'
import type { UnderWay } from './under-way.ts'

export interface EndpointDeps extends KeptListsDeps {
  readonly kept: KeptLists
  readonly underWay: UnderWay
  /** The base URL, without a slash at its end. */
  readonly base: string
  readonly changes: ListChanges
  readonly answers: JoinedAnswers
  readonly indexes: ToolIndexes
  readonly narrowing: NarrowedCallers
  /** Seals what the platform gives to clients: session ids, and the ids of servers' requests. */
  readonly sessionKey: Buffer
  /** The `WWW-Authenticate` of a 401; undefined if clients cannot sign in here. */
  readonly challenge: ((request: Request) => string) | undefined
}
