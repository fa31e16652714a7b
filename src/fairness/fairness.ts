/**
 * Everything that requests share, divided among owners (`owner.ts`): memory, the processor, places in queues, requests
 * to other servers. One object for the whole process; a request takes from it through its allowance (`allowance.ts`).
 */

import { outgoingRequestsMax, pendingBytesMax, pendingLookupsMax } from '../limits.ts'
import { Paces } from './pace.ts'
import { createOwnerPasses, type OwnerPasses } from './passes.ts'
import { Queue, Queues } from './queue.ts'
import { Shares } from './shares.ts'
import { Turns } from './turns.ts'

/** Ours: requests that read many records at once, or a server's details, one owner half of them; each holds the event loop for `eventLoopSliceMs` at a time. Past it: they wait. */
export const readsAtOnceMax = 8
/** Ours: large responses of other servers that are parsed at once, one of each owner; each takes up to 30 MB meanwhile. Past it: they wait. */
const parsesAtOnceMax = 32

/** Ours: writes that are decided and committed at once, eight of each owner. Past it: they wait. */
const commitsAtOnceMax = 64
/** Ours: TLS handshakes with other servers in which certificates are read, two of each owner. Past it: they wait. */
const handshakesAtOnceMax = 8

export interface Fairness {
  /** Bytes of bodies that are being read or are in use, and of answers that their clients have not taken. */
  readonly memory: Shares
  /** The event loop, for work whose cost grows with what somebody sent or stored. */
  readonly turns: Turns
  /** The part of each pass of the event loop that an owner's requests have. */
  readonly passes: OwnerPasses
  /** Places for requests that read as many records as somebody has stored. */
  readonly reads: Queue
  /** Places for large responses of other servers that are parsed. */
  readonly parses: Queue
  /** Writes that wait for one another: of the directory, or of one record. */
  readonly writes: Queues
  /** Places for those of them that are decided and committed: one commit may change thousands of index entries. */
  readonly commits: Queue
  /** Time in which bytes of other servers, and large answers, are handled. */
  readonly time: Paces
  /** Requests to other servers in progress. */
  readonly requests: Shares
  /** Names that are being looked up. */
  readonly lookups: Shares
  /** Places for TLS handshakes with other servers: certificates are verified in one piece each. */
  readonly handshakes: Queue
}

export function createFairness(): Fairness {
  const time = new Paces()
  return {
    memory: new Shares(pendingBytesMax),
    turns: new Turns(time),
    passes: createOwnerPasses(),
    reads: new Queue(readsAtOnceMax, readsAtOnceMax / 2),
    parses: new Queue(parsesAtOnceMax, 1),
    writes: new Queues(),
    commits: new Queue(commitsAtOnceMax, commitsAtOnceMax / 8),
    time,
    requests: new Shares(outgoingRequestsMax),
    lookups: new Shares(pendingLookupsMax),
    handshakes: new Queue(handshakesAtOnceMax, handshakesAtOnceMax / 4),
  }
}
