/**
 * Everything that requests share, divided among owners (`owner.ts`): memory, the processor, places in queues, requests
 * to other servers. One object for the whole process; a request takes from it through its allowance (`allowance.ts`).
 */

import { outgoingRequestsMax, pendingBytesMax, pendingLookupsMax } from '../limits.ts'
import { Paces } from './pace.ts'
import { createOwnerPasses } from './passes.ts'
import { Queue, Queues } from './queue.ts'
import { Shares } from './shares.ts'
import { Turns } from './turns.ts'

/** Ours: requests that read many records at once, or a server's details, one owner half of them; each holds the event loop for `eventLoopSliceMs` at a time. Past it: they wait. */
export const readsAtOnceMax = 8
/** Ours: requests that read the lines of a log at once, one of each owner; each looks at 100,000 for a second. Past it: they wait. */
const logReadsAtOnceMax = 4
/** Ours: owners whose large responses of other servers wait to be parsed, one of each. Past it: they wait. */
const parsersAtOnceMax = 32
/** Ours: large responses of other servers that are parsed at once; each takes up to a quarter of `pendingBytesMax` meanwhile. Past it: they wait. */
const parsesAtOnceMax = 2
/** Ours: writes that are decided and committed at once, eight of each owner. Past it: they wait. */
const commitsAtOnceMax = 64
/** Ours: TLS handshakes with other servers in which certificates are read, two of each owner. Past it: they wait. */
const handshakesAtOnceMax = 8

/** See `createFairness`. */
export type Fairness = Readonly<ReturnType<typeof createFairness>>

/** Made once for a process. */
export function createFairness() {
  const time = new Paces()
  return {
    /** Bytes of bodies that are being read or are in use, and of answers that their clients have not taken. */
    memory: new Shares(pendingBytesMax),
    /** Bytes of large responses in their parsed form: those that wait would leave too little in `memory` for any. */
    parsed: new Shares(pendingBytesMax),
    /** The event loop, for work whose cost grows with what somebody sent or stored. */
    turns: new Turns(time),
    /** The part of each pass of the event loop that an owner's requests have. */
    passes: createOwnerPasses(),
    /** Places for requests that read as many records as somebody has stored. */
    reads: new Queue(readsAtOnceMax, readsAtOnceMax / 2),
    /** Places for requests that read the lines of a log: apart, so that nobody's lists wait for them. */
    logReads: new Queue(logReadsAtOnceMax, 1),
    /** Places for owners whose large responses of other servers are parsed, when they have time for it. */
    parsers: new Queue(parsersAtOnceMax, 1),
    /** Places for those that are parsed. */
    parses: new Queue(parsesAtOnceMax, 1),
    /** Writes that wait for one another: of the directory, or of one record. */
    writes: new Queues(),
    /** Places for those of them that are decided and committed: one commit may change thousands of index entries. */
    commits: new Queue(commitsAtOnceMax, commitsAtOnceMax / 8),
    /** Time in which bytes of other servers, and large answers, are handled. */
    time,
    /** Requests to other servers in progress. */
    requests: new Shares(outgoingRequestsMax),
    /** Names that are being looked up. */
    lookups: new Shares(pendingLookupsMax),
    /** Places for TLS handshakes with other servers: certificates are verified in one piece each. */
    handshakes: new Queue(handshakesAtOnceMax, handshakesAtOnceMax / 4),
  }
}
