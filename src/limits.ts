/**
 * Every bound of the platform, in one place: where it comes from, why it is what it is, and after "Past it" what
 * happens there. `docs/limits.md` is the same as a table (`make generated`). Units come last in a name.
 * "Spec 8" and "Contract 3" are given from outside; "Ours" were chosen here.
 */

const kB = 1024
const MB = 1024 * kB

// Tokens

/** Spec 8: a token without a ttl lives one hour. Past it: 401. */
export const tokenLifetimeDefaultSeconds = 60 * 60
/** Spec 8: no constraint, and so no token, outlives 24 hours. Past it: 400 when it is minted. */
export const tokenLifetimeMaxSeconds = 24 * 60 * 60
/** Contract 3: a token must fit a request header of common proxies (8 KiB) with room for the others. Past it: 400 `policy_too_large`, and a token that long is not read. */
export const tokenCharsMax = 6144
/** Ours: clocks of one company differ by seconds. Past it: a token from further in the future is 401. */
export const clockSkewMaxSeconds = 30
/** Ours: how long a verifier may keep the list of public keys. Past it: a key that was published so long ago may sign. */
export const jwksMaxAgeSeconds = 300
/** Ours: a retired key is accepted until its last token is over, and a minute for clocks that differ. Past it: its tokens are 401. */
export const keyRetirementSeconds = tokenLifetimeMaxSeconds + 60
/** Ours: a clock that runs ahead for a while must not make us forget a revocation. Past it, after the token's own end: it is forgotten. */
export const revocationRetentionSeconds = 7 * 24 * 60 * 60

// Policies

/** Ours: paths of one `rpcReqMatch`. Past it: 400. */
export const constraintRpcEntriesMax = 32
/** Spec 8: characters of a path. Past it: 400. */
export const rpcKeyCharsMax = 200
/** Spec 8: characters of a pattern. Past it: 400. */
export const rpcPatternCharsMax = 500
/** Ours: the worst pattern accepted takes about 30 ms on a value of 1 KiB; larger programs grow with it. Past it: 400. */
export const rpcProgramSizeMax = 1000
/** Ours: the programs of all patterns of a policy, its parents' too: the worst take 80 ms on values of 1 KiB. Past it: 400. */
export const policyProgramSizeMax = 2000
/** Ours: each `\\p{…}` holds hundreds of ranges; a pattern of more took over a megabyte. Counted in a policy. Past it: 400. */
export const rpcUnicodeClassesMax = 8
/** Ours: characters in the ranges of patterns without case, in a policy; folding a million took half a second. Past it: 400. */
export const rpcFoldedCharactersMax = 2000
/** Ours: so that the worst pattern stays within its 30 ms. Past it: the value does not match. */
export const rpcValueCharsMax = 1024
/** Ours: characters of a text times instructions of the pattern that it is asked with; about three milliseconds. Past it: the next request has its turn first. */
export const sliceCost = 75_000
/** Ours: what reading a character of JSON counts as, from above: a megabyte takes some ten milliseconds. Past it: as for `sliceCost`. */
export const jsonCharacterCost = 0.3
/** Ours: what compiling a pattern counts as. Past it: as for `sliceCost`. */
export const patternCostToCompile = 15_000
/** Ours: costly requests of one caller that have their turns. Past it: 429. */
export const slicedWorkMax = 32
/** Ours: what narrowing one list of tools may cost, some 600 ms in slices: 3,000 tools with the names and patterns that people write. Past it: 502. */
export const narrowingCostMax = 15_000_000
/** Ours: JSON-RPC bodies nest a few levels; a longer path names nothing real. Past it: 400. */
export const rpcPathPartsMax = 16

// Names and records

/** Contract 2: namespaces and the two parts of a qualifiedName. Past it: no such name, 404 in a path, 400 in a body. */
export const slugCharsMax = 64
/** Contract 2. Past it: no such id. */
export const connectionIdCharsMax = 128
/** Ours: a storage key holds an organization and a user, and keys end at 1,024 bytes. Past it: a problem of the fixtures, 400 in a body. */
export const organizationIdCharsMax = 128
/** Ours: as for organizations. Past it: refused by the command, a problem of the fixtures. */
export const userIdCharsMax = 128
/** Ours: what `postern keys list` can show on a line. Past it: refused by the command. */
export const apiKeyNameCharsMax = 64
/** Contract 2: a key of the user's own choice carries at least this much. Below it: refused at the start, a problem of the fixtures. */
export const apiKeyCharsMin = 32
/** Ours: four times a generated key; longer ones are tokens or mistakes. Past it: refused at the start. */
export const apiKeyCharsMax = 256
/** Ours: a connection with its metadata. Past it: a problem of the fixtures. */
export const connectionBytesMax = 64 * kB
/** Ours: a server with its tools and their schemas. Past it: a problem of the fixtures. */
export const serverBytesMax = MB
/** Contract 5: a connection's name. Past it: a problem of the fixtures. */
export const connectionNameCharsMax = 255
/** Ours: what browsers and proxies carry. Past it: a problem of the fixtures. */
export const urlCharsMax = 2048
/** Ours: twice what the bench loads. `--namespace-connections`. Past it: 403 for what is made over HTTP; what the operator loads is counted and not refused. */
export const namespaceConnectionsDefault = 2_000_000
/** Ours: records of a namespace with what is beside them; the index adds about as much again. `--namespace-bytes`. Past it: as for their number. */
export const namespaceBytesDefault = 1024 * MB
/** Ours: headers that a connection sends along. Past it: 400. */
export const connectionHeadersMax = 32
/** Ours: a credential of any kind fits. Past it: 400. */
export const headerValueCharsMax = 4096
/** Ours: each pair is an index entry to write and to keep. Past it: a problem of the fixtures. */
export const connectionMetadataPairsMax = 64

// Lists

/** Spec 8. Past it: 400. */
export const pageItemsMax = 100
/** Spec 8: where no limit is given. Past it: a cursor. */
export const pageItemsDefault = 100
/** Contract 5: so that no query walks a namespace. Past it: the page ends early, with a cursor. */
export const indexEntriesExaminedMax = 20_000
/** Ours: the longest sealed cursor is 214 characters. Past it: 400. */
export const cursorCharsMax = 256
/** Ours: filters are intersected, each with a cursor of its own in the store. Past it: 400. */
export const listFiltersMax = 32
/** Ours: one turn of index work. Past it: other requests get their turn first. */
export const eventLoopSliceMs = 2
/** Ours: index entries that are read ahead, where they are mostly skipped. Past it: a batch that is used up doubles. */
export const indexBatchMin = 8
/** Ours: index entries that are read ahead, where they are mostly used. Past it: the next batch. */
export const indexBatchMax = 256

// Requests

/** Ours: `POST /tokens` carries a policy that must fit a token of 6,144 characters. Past it: 400, and the connection is closed. */
export const requestBodyBytesMax = 64 * kB
/** Ours: deeper JSON is an attack on whoever reads it next. Past it: 400. */
export const jsonDepthMax = 32
/** Ours: a text that is no JSON is read once more, at 40 MB a second, to say where it fails. Past it: it is not said where. */
export const jsonPlaceCharsMax = 256 * kB
/** Ours: tokens a second that one API key may mint; signing takes 1.5 ms of a thread each. `--mint-rate`. Past it: 429. */
export const mintsPerSecondDefault = 50
/** Ours: connections a second that one API key may write or delete, with its tokens; a sync of thousands takes its turns. `--write-rate`. Past it: 429. */
export const writesPerSecondDefault = 100
/** Ours: threads that sign, at most; one core fewer than there are, each 700 tokens a second. Past it: tokens wait. */
export const signersMax = 4
/** Ours: tokens that may wait for a thread that gives way to everything else. Past it: the thread competes until none waits. */
export const signaturesBehind = 8
/** Ours: tokens that wait for their signature; one API key may have half of what the others leave. Past it: 503. */
export const pendingSignaturesMax = 800
/** Ours: bad credentials a second from one address; an office with an expired token stays under it. `--failure-rate`. Past it: 429. */
export const failuresPerSecondDefault = 20
/** Ours: hops of `X-Forwarded-For` or `Forwarded` that are looked at, from the right. Past it: the proxy's own address counts. */
export const forwardedHopsMax = 20
/** Ours: what a rate limit allows at once, in seconds of what it allows a second. Past it: 429. */
export const burstSeconds = 20
/** Ours: names (keys, addresses) that a rate limit remembers, about 200 bytes each. Past it: the one unheard of longest begins anew. */
export const rateLimitNamesMax = 20_000
/** Ours: a connection on which nothing moves. Past it: the runtime closes it, within seven seconds. */
export const idleTimeoutSeconds = 30
/** Ours: what a stop waits for requests in flight; containers wait 10 s. Past it: they are cut off. */
export const shutdownTimeoutMs = 5000

// The gateway

/** Contract (gateway): the first contact when a connection is made. Past it: the connection is made with the state `error`. */
export const probeTimeoutMs = 5000
/** Contract (gateway): seconds to the head of an upstream's answer. `--upstream-timeout`. Past it: 504. */
export const upstreamTimeoutDefaultSeconds = 60
/** Ours: what `--upstream-timeout` may be. Past it: refused at the start. */
export const upstreamTimeoutMaxSeconds = 600
/** Ours: one JSON-RPC request; arguments with a document in them fit. Past it: 413. */
export const rpcBodyBytesMax = MB
/** Ours: a body of a call that came at once. Past it: credential and connection are looked at again before anything is called. */
export const slowBodyMs = 50
/** Ours: JSON-RPC bodies nest a few levels; arguments may add theirs. Past it: 400, -32700. */
export const rpcDepthMax = 64
/** Ours: keys of all objects of one body: 80,000 took a tenth of a second to read. Past it: 400. */
export const rpcKeysMax = 20_000
/** Ours: values in the objects and lists of one body. Past it: 400. */
export const rpcValuesMax = 150_000
/** Ours: the head of an upstream's answer. Past it: 502. */
export const upstreamHeadBytesMax = 32 * kB
/** Ours: an answer that is no stream is held in memory, and a stream may be so far ahead of its reader. Past it: 502, or the stream ends. */
export const upstreamResponseBytesMax = 16 * MB
/** Ours: answers under way in all: not whole yet, or not read by their client. One API key may hold half of what the others leave, one token half of that. Past it: 429, or the stream ends. */
export const pendingResponseBytesMax = 512 * MB
/** Ours: an answer that is read here and not only passed on: lists that are narrowed, `.tools`. Past it: 502. */
export const parsedResponseCharsMax = 4 * MB
/** Ours: what such an answer takes in memory for each of its characters, once it is read: some three bytes mostly, and seven for thousands of small objects. Counted as of `pendingResponseBytesMax`. Past it: 429. */
export const parsedResponseMemoryFactor = 8
/** Ours: keys of all objects of such an answer; twice as many took a tenth of a second to read. Past it: 502. */
export const parsedResponseKeysMax = 40_000
/** Ours: values in the objects and lists of such an answer. Past it: 502. */
export const parsedResponseValuesMax = 200_000
/** Ours: how deep such an answer nests; schemas in schemas do some tens. Writing a hundred thousand levels anew took a second. Past it: 502. */
export const parsedResponseDepthMax = 500
/** Ours: time for the rest of an answer that is no stream, once it has begun. Past it: 504. */
export const upstreamBodyTimeoutMs = 60_000
/** Ours: a stream in all: what a long task has to say fits. Past it: the stream ends. */
export const streamBytesMax = 256 * MB
/** Ours: one event of a stream that must be looked into. Past it: the stream ends. */
export const streamEventBytesMax = parsedResponseCharsMax
/** Ours: a stream on which nothing comes; servers send comments meanwhile. Past it: the stream ends. */
export const streamIdleTimeoutMs = 5 * 60_000
/** Ours: a stream in all. Past it: the stream ends. */
export const streamLifetimeMs = 60 * 60_000
/** Ours: how often an open stream's credential and connection are looked at. Within it: a stream goes on after their end. */
export const streamCheckIntervalMs = 500
/** Ours: streams looked at in one turn of the event loop; a token that is looked up anew takes a quarter of a millisecond. Past it: the next turn. */
export const streamsCheckedPerTurn = 16
/** Ours: requests under way through one connection, streams included. One API key may have half of what the others leave, one token half of that. Past it: 429. */
export const concurrentCallsMax = 8000
/** Ours: sessions of upstreams that are kept for clients without one, by API key; some hundred bytes each. Past it: the one unused longest is opened again. */
export const sessionsKeptMax = 500
/** Ours: API keys for which sessions are kept. Past it: those of the one unused longest are opened again. */
export const holdersWithSessionsMax = 500
/** Stores 7: what an upstream may call a session, so that its sealed id fits 1,024 characters. Past it: 502. */
export const upstreamSessionIdCharsMax = 512
/** Ours: connections whose last written state is remembered. Past it: written once more. */
export const statusesKeptMax = 20_000
/** Ours: spaces before a response that is passed on; a server may pad it to have it sent at once. Past it: 502. */
export const leadingSpacesMax = 64 * kB
/** Ours: a whole answer of more is handed over in pieces, so that we know when it was read. Within it: the system's buffers hold it. */
export const responseInOnePieceBytesMax = 256 * kB
/** Ours: pages of a server's tools that `.tools` reads. Past it: the later ones are not shown. */
export const toolPagesMax = 100
/** Ours: upstreams to which connections are kept open for a few seconds. Past it: the one unused longest is connected to again. */
export const upstreamPoolsMax = 1000
/** Ours: how often the deadlines of calls are looked at, and after which a call asks whether its client is still there. Within it: nobody is late. */
export const deadlineTickMs = 50
/** Ours: connections to one upstream that are being made; given up ones too, until the system has given them up. Past it: 502. */
export const pendingConnectsMax = 2000
/** Ours: an unused connection to an upstream is kept so long, or a second less than it says itself. Past it: it is closed. */
export const socketIdleMs = 4000
/** Ours: tools of one server that `.tools` holds. Past it: 502. */
export const toolsListedMax = 20_000
/** Ours: all pages of a server's tools that `.tools` reads, together. Past it: 502. */
export const toolsCharsMax = 16 * MB
/** Ours: connections that are held decoded for calls. Past it: the one unused longest is read again. */
export const connectionsKeptBytesMax = 16 * MB
/** Ours: a connection's state is written no more often than this. Within it: the state stays as it is. */
export const statusWriteIntervalMs = 10_000
/** Ours: what a server may answer to a request of the first contact; instructions and icons fit. Past it: the connection is made with the state `error`. */
export const probeResponseBytesMax = 256 * kB
/** Ours: of such an answer, what is read in one turn of the event loop; some five milliseconds. Past it: the next turn. */
export const probeBytesAtOnce = 4 * kB
/** Ours: requests of the first contact; there are five, and each request of the server itself is answered with one more. Past it: the connection is made with the state `error`. */
export const probeRequestsMax = 20
/** Ours: how long the addresses of a name are remembered; the one looked at is the one connected to. Past it: resolved again. */
export const dnsCacheTtlMs = 5000
/** Ours: how long a name server may take. Past it: the name has no address, for as long as that is remembered. */
export const lookupTimeoutMs = 5000
/** Ours: names that are looked up at once; one API key may take half of what the others leave. Past it: 502, or the connection is made with the state `error`. */
export const pendingLookupsMax = 400
/** Ours: names whose addresses are remembered, some hundred bytes each. Past it: resolved again. */
export const dnsCacheEntriesMax = 1000
/** Ours: characters of the protocol version that a server negotiates; they are dates, so far. Past it: taken for 2025-11-25. */
export const protocolVersionCharsMax = 32
/** Ours: a piece of a large response, handed over when its client is ready. Past it: the next piece. */
export const responsePieceBytes = 64 * kB
/** Ours: bytes of an event stream that are parsed in one step, and the rest of their last line. Past it: the next step. */
export const eventBytesAtOnce = 16 * kB

// The log, the audit log and the disk

/** Ours: refusals of one API key and its tokens that the audit log writes one by one in a second. Past it: their number, with whose they are. */
export const auditRefusalsPerCaller = 10
/** Ours: callers whose first refusal in a second is always written; about half a kilobyte each. Past it: the number of those of all others. */
export const auditCallersPerSecond = 500
/** Ours: refusals of all callers in a second, beyond the first of each. Past it: their number, with whose they are. */
export const auditRefusalsPerSecond = 100
/** Ours: a method and a name of a refused MCP request, as the audit log has them; MCP's own names end at 128. Past it: cut, with an ellipsis. */
export const auditNameCharsMax = 128
/** Ours: while the store cannot be written, every request would say so. Within it: the log says it once. */
export const unavailableLogIntervalMs = 10_000
/** Ours: how often the log says why credentials are refused, for each reason. Within it: they are counted, and the next line says how many. */
export const refusalLogIntervalMs = 10_000
/** Ours: room left on the disk. LMDB does not survive a full one for sure. Below it: writes are 503, reads go on, and revocations and deletions too. */
export const freeBytesMin = 16 * MB
/** Ours: room that revocations and deletions leave too; each writes some ten kilobytes. Below it: 503, every write. */
export const reservedBytesMin = 4 * MB
/** Storage contract: text before and after concatenated values: the frame of a page. Past it: a fault of ours. */
export const wrapBytesMax = 512
/** Storage contract: a key's bytes. LMDB holds 1,978 with our page size. Past it: refused before anything is written. */
export const storeKeyBytesMax = 1024
/** Ours: where the last entry of an audit log is looked for; lines are short, so several are in it. Past it: the chain goes on from what the lock keeps. */
export const auditTailBytes = 64 * kB

// What is remembered. Past each of these bounds something is looked up again, and nothing else happens.

/** Ours: tokens and keys resolved to callers, kept until the registry changes. Past it: looked up again. */
export const callersCachedMax = 10_000
/** Ours: the same in memory: a policy read takes about ten times its token, fifty kilobytes at the most. Past it: looked up again. */
export const callersCachedBytesMax = 64 * MB
/** Ours: tokens that were accepted or made here, known again by their text. Past it: their key's failures can hold them up. */
export const credentialsKnownBytesMax = 16 * MB
/** Ours: programs of patterns that are kept compiled, by their instructions, a hundred bytes each. Past it: compiled again. */
export const patternsKeptSizeMax = 200_000
/** Ours: what a pattern said of a text is kept for so many texts. Past it: asked again, all of them. */
export const rpcVerdictsMax = 100
/** Ours: longer texts are not worth keeping. Past it: the pattern is asked each time. */
export const rpcVerdictCharsMax = 128
/** Ours: lists and connections that a caller was found to be allowed, by URL; a few kilobytes each at the most. Past it: decided again. */
export const admissionsKeptMax = 4000
/** Ours: longer URLs are not worth keeping. Past it: decided again. */
export const admissionUrlCharsMax = 512
/** Ours: details of servers that a caller was found to be allowed, counted for each caller. Past it: read again. */
export const detailsKeptBytesMax = 16 * MB
/** Ours: names of lists, a few hundred bytes each, of which some were asked for twice. Past it: forgotten, all at once. */
export const pageAdmissionsMax = 1000
/** Ours: ready answers to lists. Past it: made again. */
export const pageCacheBytesMax = 16 * MB
/** Ours: cursors remembered from when they were given, some hundred bytes each. Past it: opened again. */
export const cursorsKeptMax = 5000
/** Ours: versions of namespaces, some hundred bytes each. Past it: read again. */
export const versionsKeptMax = 4000
/** Ours: records of the registry (servers, namespaces, memberships, keys) kept decoded. Past it: read again. */
export const registryCacheBytesMax = 16 * MB

// Mocks

/** Ours: what a recorded answer may make its caller wait. Past it: a problem of the fixtures. */
export const mockDelayMsMax = 60_000
/** Ours: recorded answers of one server that are looked at. Past it: the later ones are not. */
export const recordedAnswersMax = 5000
/** Ours: mocked servers whose description is held ready. Past it: the one unused longest is read again. */
export const mockServersKeptMax = 200
/** Ours: parts and characters that a schema asks a made-up value to have at least. Past it: the error says to record an answer. */
export const madeUpSizeMax = 20_000
/** Ours: patterns of a schema over one value, instructions times characters; some 40 ms. Past it: the arguments are refused. */
export const mockPatternCostMax = 1_000_000
/** Ours: answers of mocks that are held ready, all together. Past it: the one unused longest is made again, the same. */
export const mockAnswersBytesMax = 16 * MB
/** Ours: errors of arguments that an answer names. Past it: left out. */
export const argumentErrorsShownMax = 10
/** Ours: seeds that are tried where a schema is hard to fit. Past it: the error says to record an answer. */
export const madeUpTriesMax = 8
/** Ours: how deep a made-up value nests. Past it: as little as the schema lets. */
export const madeUpDepthMax = 12

// Reading

/** Ours: errors of one variant that are compared to find the variant that was meant; a list of twenty thousand bad items has one for each. Past it: the rest is not looked at. */
export const unionErrorsReadMax = 50
/** Ours: characters of a number in JSON: longer than any that a program writes. Past it: not taken for a number that two readers agree on. */
export const jsonNumberCharsMax = 400
/** Ours: names that a guess at what was meant looks through. Past it: no guess. */
export const nearNameCandidatesMax = 10_000
/** Ours: characters of such a name: longer ones are told apart by eye. Past it: no guess. */
export const nearNameCharsMax = 64
/** Ours: guesses for one set of fixtures: each looks through all names of its kind. Past it: problems without a guess. */
export const nameGuessesMax = 50
/** Ours: characters of a name by which a problem calls its record. Past it: it is called by its place. */
export const recordNameCharsMax = 128
/** Ours: problems of one file of fixtures: more than anybody reads at once. Past it: not reported. */
export const problemsPerFileMax = 1000
/** Ours: how deep fixtures and exports nest; schemas of tools nest deeper than requests do. Past it: a problem of the file. */
export const fixtureDepthMax = 64
/** Ours: problems that a command prints. Past it: how many more there are. */
export const problemsShownMax = 100
/** Ours: functions that the log names of a fault, innermost first; deeper is the framework. Past it: left out. */
export const stackFunctionsShownMax = 8
/** Ours: parts of a name with slashes whose path is checked as it arrived. Past it: 404, whatever the path. */
export const wildcardPartsMax = 5

// Storage

/** Ours: entries that a long load holds before they are written. Past it: written. */
export const segmentSpillBytes = MB
/** Ours: looks at a file that another process writes meanwhile. Past it: taken as it was the last time. */
export const fileCheckTriesMax = 5
/** Ours: LMDB’s own bound: no tree is deeper. Past it: the file is damaged. */
export const treeDepthMax = 32
/** Ours: API keys that are read at once for a list of all. Past it: the next read. */
export const apiKeysPerRead = 1000
/** Ours: leftover connections that are removed in one commit. Past it: the next commit. */
export const leftoverBatchMax = 500
/** Ours: marks of removed namespaces that are read: as many as the largest store has namespaces. Past it: the rest is not looked at. */
export const leftoverMarksMax = 1_000_000
/** Ours: keys and values of one commit of a large load; with what LMDB and the segments add, it is held in memory twice. Past it: the next commit. */
export const aheadCommitBytesMax = 8 * MB
/** Ours: what a load holds before it is spooled to disk, and what is read back at once. Past it: the next chunk. */
export const spoolChunkBytes = 256 * kB
/** Ours: a load that never touches the disk. Past it: spooled to the data folder. */
export const spoolMemoryBytesMax = 16 * MB
/** Ours: records that go with their fixtures; so many do not go by a small edit, and the folder may be the wrong one. Past it: the log warns. */
export const removedWarnMin = 10
/** Ours: removed records that the log names. Past it: how many more. */
export const removedNamesShownMax = 5
/** Ours: index entries that an import sorts at once. Past it: the next batch. */
export const importIndexBatchMax = 400_000

/** What the bounds owe one another. One that is broken ends the process at its start, with a line that says which. */
const relations: readonly (readonly [what: string, holds: boolean])[] = [
  ['a token lives no longer by default than it may', tokenLifetimeDefaultSeconds <= tokenLifetimeMaxSeconds],
  ['a retired key outlives every token that it signed', keyRetirementSeconds >= tokenLifetimeMaxSeconds],
  ['a revocation outlives every token that it ends', revocationRetentionSeconds >= tokenLifetimeMaxSeconds],
  ['a token fits a request header of common proxies, with a quarter for the others', tokenCharsMax <= 6 * kB],
  ['a page has no more rows by default than it may', pageItemsDefault <= pageItemsMax],
  // Kind, namespace, NUL, the digest of a term, and the id: the longest key there is.
  ['the longest key fits the store', 1 + slugCharsMax + 1 + 16 + connectionIdCharsMax <= storeKeyBytesMax],
  ['revocations have room on the disk when writes have none', reservedBytesMin < freeBytesMin],
  ['a response that is parsed is one that was accepted', parsedResponseCharsMax <= upstreamResponseBytesMax],
  ['four callers can have the largest response at once', 4 * upstreamResponseBytesMax <= pendingResponseBytesMax],
  ['an event that is parsed fits its stream', streamEventBytesMax <= streamBytesMax],
  ['the tools of a server fit what is parsed of it', parsedResponseCharsMax <= toolsCharsMax],
  ['reading ahead grows', indexBatchMin <= indexBatchMax],
  // Sealed: nonce, tag and prefix, in base64url.
  ['a sealed session id has no more than 1,024 characters', ((upstreamSessionIdCharsMax + 28) * 4) / 3 + 16 <= 1024],
]
for (const [what, holds] of relations) if (!holds) throw new Error(`limits.ts: not so: ${what}`)
