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

/** Ours: requests in progress that read many records, or a server's details; one owner has at most half of these requests. Each request holds the event loop for `eventLoopSliceMs` at a time. Past it: further requests wait. */
export const readsAtOnceMax = 8
/** Contract 21.1: questions of one caller about policies that may wait while postern answers four others of this owner. Past it: 429. */
const questionsWaitingMax = 28
/** Ours: requests in progress that read the lines of a log, at most one for each owner; each looks at 100,000 lines, which takes a second. Past it: further requests wait. */
const logReadsAtOnceMax = 4
/** Ours: owners that have a large response of another server waiting for the parser, one response for each owner. Past it: further owners wait. */
const parsersAtOnceMax = 32
/** Ours: large responses of other servers that postern parses at the same time; meanwhile, each response takes up to a quarter of `pendingBytesMax`. Past it: further responses wait. */
const parsesAtOnceMax = 2
/** Ours: writes that postern decides and commits at the same time, at most eight for each owner; and as many that take access away. Past it: further writes wait. */
const commitsAtOnceMax = 64
/** Ours: TLS handshakes with other servers in which postern reads certificates at the same time, at most two for each owner. Past it: further handshakes wait. */
const handshakesAtOnceMax = 8

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
    /** Places for questions about policies: apart, so that nobody's lists wait for them. */
    questions: new Queue(readsAtOnceMax, readsAtOnceMax / 2, questionsWaitingMax),
    /** Places for requests that read the lines of a log: apart, so that nobody's lists wait for them. */
    logReads: new Queue(logReadsAtOnceMax, 1),
    /** Places for owners whose large responses of other servers are parsed, when they have time for it. */
    parsers: new Queue(parsersAtOnceMax, 1),
    /** Places for those that are parsed. */
    parses: new Queue(parsesAtOnceMax, 1),
    /** Reads of records whose size nobody knows, by owner: one after the other, when the owner has time. */
    records: new Queues(),
    /** Writes that wait for one another: of the directory, or of one record. */
    writes: new Queues(),
    /** Places for those of them that are decided and committed: one commit may change thousands of index entries. */
    commits: new Queue(commitsAtOnceMax, commitsAtOnceMax / 8),
    /** As many for those that take access away: others wait in their places for the owner's time. */
    removals: new Queue(commitsAtOnceMax, commitsAtOnceMax / 8),
    /** Time in which bytes of other servers, and large answers, are handled. */
    time,
    requests: new Shares(outgoingRequestsMax),
    lookups: new Shares(pendingLookupsMax),
    /** Places for TLS handshakes with other servers: certificates are verified in one piece each. */
    handshakes: new Queue(handshakesAtOnceMax, handshakesAtOnceMax / 4),
  }
}
