/**
 * The bounds of the whole: the source of each, the reason for its value, and after "Past it" what happens beyond it. A
 * bound of one part alone stands in its file, written the same way. `docs/limits.md` has a table of all (`make
 * generated`). Names end with their unit. "Spec 8" and "Contract 3.1" are given; "Ours" were chosen here.
 */

const kB = 1024
const MB = 1024 * kB

// Tokens

/** Spec 8: lifetime of a token without a ttl. Past it: 401. */
export const tokenLifetimeDefaultSeconds = 60 * 60
/** Spec 8: the longest lifetime of a constraint, and so of a token. Past it: 400 when the token is minted. */
export const tokenLifetimeMaxSeconds = 24 * 60 * 60
/** Contract 3.1: a token must fit a request header of common proxies (8 KiB) and leave room for other headers. Past it: 400 `policy_too_large` when it is minted; a longer token in a request is not parsed. */
export const tokenCharsMax = 6144
/** Ours: how far in the future a token's time of issue may be, because the clocks of a company's servers differ by seconds. Past it: the token is 401. */
export const clockSkewMaxSeconds = 30
/** Ours: how long a verifier may cache the public keys. Past it: postern may begin to sign with a key that it published this long ago. */
export const jwksMaxAgeSeconds = 300
/** Ours: how long a retired signing key verifies tokens: until the last token that it signed has expired, plus a minute for clock differences. Past it: the tokens of the key are 401. */
export const keyRetirementSeconds = tokenLifetimeMaxSeconds + 60
/** Ours: how long postern keeps a revocation after its token has expired, so that the revocation survives a clock that runs fast for a while. Past it: postern deletes the revocation. */
export const revocationRetentionSeconds = 7 * 24 * 60 * 60

// Directory and catalogue

/** Contract 10.1: namespaces on a page. Past it: 400. */
export const namespacesPageMax = 50
/** Contract 10.3: namespaces that a user may own before postern refuses to create another. Past it: 403. */
export const namespacesPerUserDefault = 3
/** Ours: namespaces that an organization may own before postern refuses to create another; `/me` and the lists of each member look at all of them. Past it: 403 for all but operators; fixtures and imports are not refused. */
export const namespacesPerOrganizationMax = 1000
/** Ours: API keys, without the revoked ones, that a user or an organization may have when somebody creates another key over HTTP. The number is limited because one write removes an organization and revokes all its keys. Past it: 403. */
export const holderApiKeysMax = 100
/** Ours: API keys that a user or an organization creates in an hour; a revoked key leaves a record of 0.7 kB, so that no import brings the key back. Past it: 429. */
export const newKeysPerHourMax = 100
/** Ours: namespaces that a user or an organization creates in a day; for the name of a deleted namespace, postern keeps a mark of 0.2 kB, so that nothing that was valid in it is valid in a later namespace of the same name. Past it: 429. */
export const newNamespacesPerDayMax = 2000
/** Ours: deletions and revocations that one API key may make in a minute even past `--write-rate`; its tokens, and other keys of its organization, cannot use them up. Past it: 429. */
export const removalsPerMinuteMax = 60
/** Ours: servers that one request imports; for each of them, other writes of the directory wait a fifth of a millisecond. Past it: 400; a command that imports more servers sends several requests. */
export const importedServersMax = 500
/** Ours: API keys, grants, calls or audit entries on a page. Past it: 400. */
export const listPageMax = 100
/** Ours: members of an organization; one write removes an organization with all its members. Past it: 403. */
export const organizationMembersMax = 10_000
/** Contract 9.2: servers on a page. Past it: 400. */
export const serversPageMax = 100
/** Contract 9.2: servers on a page without `pageSize`. Past it: further servers are on the next page. */
export const serversPageDefault = 10
/** Ours: different words of a server that postern indexes, those of its name first and those of its description last. Past it: a search does not find the server by its other words. */
export const searchedWordsMax = 2000
/** Ours: different words of all servers of a namespace that are indexed; each takes 300 to 500 bytes of memory. Past it: a search finds further servers of the namespace by their names. */
export const namespaceSearchedWordsMax = 50_000
/** Ours: different words of all servers that postern indexes, which take 100 to 160 MB; an owner has at most half of what the other owners leave, and a namespace half of its owner's part. Past it: a search finds further servers by their names. */
export const allSearchedWordsMax = 330_000
/** Ours: characters that postern indexes of each field of a server; the names of all its tools together are one field. Past it: a search does not find the rest of the field. */
export const searchedCharsMax = 16 * kB
/** Contract 9.6: bytes of the body of `PUT /servers`. Past it: 413. */
export const serverBodyBytesMax = MB
/** Contract 9.4: the largest `topK`; a search without `topK` has at most as many hits. Past it: 400. */
export const searchHitsMax = 500
/** Contract 9.4: the least `topK`. Past it: 400. */
export const searchHitsMin = 10
/** Contract 9.5: characters of a search. Past it: 400. */
export const searchCharsMax = 256
/** Contract 9.5: fewest letters with which the last word of a search also matches the beginning of a word. Below it: the last word matches only a whole word. */
export const searchBeginningCharsMin = 3
/** Ours: servers on a page of `/v0.1/servers`; the public MCP Registry has as many. Past it: 400. */
export const registryPageMax = 100
/** Ours: servers on a page of `/v0.1/servers` without `limit`, as in the public MCP Registry. Past it: further servers are on the next page. */
export const registryPageDefault = 30
/** Ours: calls of tools a second that one API key with its tokens, or all keys of one organization together, may make; at that rate, their lines in the record of calls take up to 12 GB a day. Change this with `--call-rate`. Past it: 429. */
export const callsPerSecondDefault = 100
/** Ours: pages that postern reads of a server's list of tools, resources or prompts. Past it: a warning, or 502. */
export const introspectionPagesMax = 64

// Sign-in

/** Contract 12.1: lifetime of a browser session. Past it: the person must sign in again. */
export const browserSessionSeconds = 12 * 60 * 60
/** Contract 12.2: lifetime of a sign-in link. Past it: 400. */
export const loginLinkSeconds = 10 * 60
/** Contract 12.4, as Smithery's command line waits: lifetime of a login on a command line. Past it: 404. */
export const cliLoginSeconds = 5 * 60
/** Ours: browser sessions that a user begins in a minute. Past it: 429. */
export const sessionsPerMinuteMax = 30
/** Ours: logins on a command line begun in a minute from one address. Past it: 429. */
export const cliLoginsPerMinuteMax = 30
/** Contract 13.6: lifetime of an authorization code. Past it: `invalid_grant`. */
export const codeSeconds = 60
/** Contract 13.8: lifetime of an access token that a client got by signing in. Past it: the client refreshes the token. */
export const accessTokenSeconds = 60 * 60
/** Ours: bytes of a form; the largest names a few hundred tools. Past it: 400. */
export const formBytesMax = 64 * kB
/** Ours: how long after a client's last grant postern keeps its registration, so that the client can begin a new sign-in without a new registration. Past it: postern removes the client. */
export const usedClientSeconds = 180 * 24 * 60 * 60
/** Ours: registered clients that count for one user: the clients that got their first grant from this user. Each takes up to 25 kB. Past it: within an hour, postern forgets the client that was used longest ago, and the client registers again. */
export const userClientsMax = 200
/** Ours: grants of a user; each has up to 15 kB. Past it: within an hour the oldest one ends. */
export const userGrantsMax = 1000
/** Ours: how often in a minute a user may press *Allow* for clients; a person cannot press it so often. Each time, postern keeps a grant, or a record of up to 20 kB for a minute. Past it: 429. */
export const grantsPerMinuteMax = 60
/** Ours: documents of clients that postern fetches in a minute for one user; each fetch is a request to a server that the client names. Past it: 429. */
export const clientDocumentsPerMinuteMax = 30
/** Contract 13.3: registrations a minute from one address. Past it: 429. */
export const registrationsPerMinuteMax = 30
/** Ours: forms of one connection's setup page that people send in a minute; for each form, postern asks other servers and keeps a record. Past it: 429. */
export const setupsPerMinuteMax = 60
/** Ours: forms that people send in a minute on the setup pages of all connections of one owner; each form leaves up to 20 kB for ten minutes, and may register a client. Past it: 429. */
export const ownerSetupsPerMinuteMax = 120
/** Ours: how often in an hour postern replaces its client at an authorization server; all connections to a server share this client. Past it: 429. */
export const newClientsPerHourMax = 1
/** Ours: characters of a redirect URI, a client id that is a URL, or another URL of a client. Past it: 400. */
export const clientUrlCharsMax = 2000
/** Contract 14.9: time for a fetch of metadata, a client document, or a token. Past it: 502, or 400. */
export const oauthFetchTimeoutMs = 10_000
/** Contract 14.1: lifetime of the ticket in a setup link. Past it: the link no longer works without a key. */
export const setupTicketSeconds = 60 * 60
/** Contract 14.5: time that a person has to sign in at an authorization server. Past it: 400, and the person must start again. */
export const attemptSeconds = 10 * 60
/** Ours: characters of a client id, a client secret or a scope that somebody sets for a connection. Past it: 400. */
export const oauthTextCharsMax = 2000
/** Ours: grants or clients that one write ends. Past it: postern ends the rest in further writes. */
export const grantsPerWrite = 200

// Policies

/** Spec 8: characters in a pattern. Past it: 400. */
export const rpcPatternCharsMax = 500
/** Ours: instructions of one compiled pattern; the worst accepted pattern takes about 30 ms on a value of 1 KiB, and the time grows with the size. Past it: 400. */
export const rpcProgramSizeMax = 1000
/** Ours: instructions of all patterns in a policy, with those of the token's parents; the slowest patterns within this limit take 80 ms on values of 1 KiB. Past it: 400. */
export const policyProgramSizeMax = 2000
/** Ours: `\p{…}` classes in a policy; each class holds hundreds of ranges, and a pattern with more classes took over a megabyte. Past it: 400. */
export const rpcUnicodeClassesMax = 8
/** Ours: ranges of characters in the classes of a policy's patterns, or of one pattern of a JSON Schema; a range counts as often as the pattern repeats it. It takes a millisecond and 500 kB of memory to compile 20,000 ranges. Past it: 400 for a policy; in a JSON Schema, postern treats the pattern as one that RE2 does not know. */
export const patternRangesMax = 20_000
/** Ours: characters in the ranges of all case-insensitive patterns of a policy. For each of these characters, postern also finds the other case; for a million characters, this took half a second. Past it: 400. */
export const rpcFoldedCharactersMax = 2000
/** Ours: cost of the matching that postern does in one turn: the number of characters of the text, times the number of instructions of the pattern. This cost takes about three milliseconds. Past it: the next request has its turn first. */
export const sliceCost = 75_000
/** Ours: largest part of postern's time that one owner may use for the bytes that other servers send to this owner, and for large answers to this owner. Past it: postern reads these bytes from their sockets later, and the owner's requests wait. */
export const ownerTimeShare = 0.2
/** Ours: pieces of work of one token, or of one key used directly, that wait for a turn or a place; an owner may have twice as many. Past it: 429. */
export const waitingJobsMax = 256
/** Ours: bytes of a body that announces no length. postern counts each such body as this many bytes until it has read the body; the bound is twice the largest body of an operation. Past it: the runtime answers 413, without a body, and closes the connection. */
export const chunkedBodyBytesMax = 2 * MB
/** Ours: bytes of memory for each byte of a request's body: the body, its text, and what it is parsed into. Counted against `pendingBytesMax`. Past it: 429. */
export const bodyMemoryFactor = 6
/** Ours: requests to other servers in progress, each with a socket; one owner may have half of what the others leave. Past it: 429. */
export const outgoingRequestsMax = 20_000

// Names and records

/** Contract 2.5: characters in a namespace, and in each part of a qualifiedName. Past it: not a valid name; 404 in a path, 400 in a body. */
export const slugCharsMax = 64
/** Contract 2.5: characters in a connection id. Past it: not a valid id. */
export const connectionIdCharsMax = 128
/** Contract 2.1: characters in a key chosen by the user. Below it: postern refuses the key when it starts, or reports a problem of the fixtures. */
export const apiKeyCharsMin = 32
/** Ours: characters in a key: four times as many as in a generated key; a longer text is a token or a mistake. Past it: postern refuses the key when it starts. */
export const apiKeyCharsMax = 256
/** Ours: a connection with its metadata. Past it: a problem of the fixtures. */
export const connectionBytesMax = 64 * kB
/** Ours: a server with its tools and their schemas. Past it: a problem of the fixtures. */
export const serverBytesMax = MB
/** Ours: characters in a URL: browsers and proxies support as many. Past it: a problem of the fixtures. */
export const urlCharsMax = 2048
/** Ours: connections in a namespace, twice as many as `make bench` loads. Change this with `--namespace-connections`. Past it: 403 for writes over HTTP; postern counts what fixtures and imports load, but does not refuse it. */
export const namespaceConnectionsDefault = 2_000_000
/** Ours: bytes of a namespace's connections with their index and private parts, and of its servers with their listings. On disk, these records take about twice as much. They take up to four times as much if somebody deletes records again and again, and each new record is larger than the last: the gap that a deleted record leaves is then too small for the new record. Change this limit with `--namespace-bytes`. Past it: 403 for writes over HTTP; postern counts what fixtures and imports load, but does not refuse it. */
export const namespaceBytesDefault = 1024 * MB
/** Ours: servers registered in a namespace; every list looks at all of them. Past it: 403 for writes over HTTP; postern counts what fixtures and imports load, but does not refuse it. */
export const namespaceServersMax = 1000
/** Ours: servers of one owner, in all of the owner's namespaces; each takes 1 to 10 kB of memory, for the filters and the words of lists. Past it: 403 for another server over HTTP; postern counts what fixtures and imports load, but does not refuse it. */
export const ownerServersMax = 5000

/** Ours: keys of small records that a read may ask for if it shares an SQL statement with other reads. Past it: the read gets its own statement. */
export const sharedReadKeysMax = 100
/** Ours: records and index entries that postern writes to PostgreSQL with one statement when it loads fixtures or an import. Past it: the next statement writes the rest. */
export const postgresEntriesPerStatement = 1000
/** Contract 16.5: milliseconds until a read of PostgreSQL must be answered. Past it: 503. */
export const storeReadMs = 2000
/** Contract 16.8: milliseconds until the outcome of a commit must be certain. Past it: 503, `outcome_unknown`. */
export const storeOutcomeMs = 10_000
/** Ours: database connections that commits must leave free for reads. If `--store-pool` is more than five, long transactions have as many further connections. Of the connections for other statements, reads of large records may use half, and postern keeps one for small reads alone. Past it: commits wait, and reads of large records wait for a second; then 503. */
export const storePoolReserved = 2
/** Contract 16.10: milliseconds for which postern trusts a primary after it sent the last commit that this primary acknowledged. Past it: 503. */
export const storeBeliefMs = 5000
/** Ours: milliseconds that a command waits for the database. Past it: exit 1. */
export const storeCommandMs = 5000
/** Ours: milliseconds without a heartbeat after which a replica counts as gone; by then, ten heartbeats are missing. Past it: another replica may take its name. */
export const replicaGoneMs = 10_000
/** Ours: milliseconds between two looks at the hosts of the database after a connection was lost. Past it: postern looks again. */
export const storeLookAgainMs = 100
/** Contract 16.1: the default of `--store-pool`. Past it: statements wait for a connection. */
export const storePoolDefault = 10
/** Contract 16.7: milliseconds by which this machine's clock may differ from the clock of the database when postern starts. Past it: postern does not start. */
export const clockOffsetMaxMs = 20_000
/** Ours: entries that a scan of a store reads at once. Past it: postern reads the rest in further reads. */
export const scannedPerRead = 1000

// Lists

/** Spec 8: items on a page. Past it: 400. */
export const pageItemsMax = 100
/** Spec 8: items on a page if the request has no limit. Past it: the page has a cursor for the rest. */
export const pageItemsDefault = 100
/** Ours: one turn of index work. Past it: other requests have their turn first. */
export const eventLoopSliceMs = 2

// Requests

/** Ours: bytes of the JSON body of most operations. This is enough for `POST /tokens`, whose body holds a policy that must fit a token of 6,144 characters. Past it: 400, and the connection is closed. */
export const requestBodyBytesMax = 64 * kB
/** Ours: bytes of the body of a revocation, enough for a token of 6,144 characters; postern handles a revocation without waiting. Past it: 400, and the connection is closed. */
export const revocationBytesMax = 8 * kB
/** Ours: nesting of a JSON body; deeper JSON is an attack on the parsers that read it later. Past it: 400. */
export const jsonDepthMax = 32
/** Ours: tokens a second that one API key, or all keys of one organization together, may mint; a thread needs 1.5 ms for each signature. At this rate, the lines about the mints take up to 6 GB a day in the audit log. Change this with `--mint-rate`. Past it: 429. */
export const mintsPerSecondDefault = 50
/** Ours: connections a second that one API key with its tokens, or all keys of one organization together, may write or delete; a program that writes thousands of connections has to pause now and then. Change this with `--write-rate`. Past it: 429. */
export const writesPerSecondDefault = 100
/** Ours: tokens waiting for their signature; one owner may have half of what the others leave. Past it: 503. */
export const pendingSignaturesMax = 800
/** Ours: invalid credentials a second from one address; an office where one token has expired stays below this rate. Change this with `--failure-rate`. Past it: 429. */
export const failuresPerSecondDefault = 20
/** Ours: how much of a rate somebody may use at once after a pause, in seconds of this rate: at a rate of 50 a second, 1,000 at once. Past it: 429. */
export const burstSeconds = 20
/** Ours: how long a client's connection may have no traffic. Past it: the runtime closes the connection, within seven seconds. */
export const idleTimeoutSeconds = 30
/** Ours: how long a shutdown waits for requests in progress; containers wait 10 s. Past it: postern aborts these requests. */
export const shutdownTimeoutMs = 5000
/** Ours: how long a shutdown then waits for the lines of the calls that it aborted. Past it: lines that postern has not written yet are lost. */
export const shutdownRecordMs = 2000

// The gateway

/** Contract 7.4: how long postern waits for the head of an MCP server's response. If the server answers a call at `.tools` with a stream, postern waits as long for the answer in this stream. Change this with `--upstream-timeout`. Past it: 504. */
export const upstreamTimeoutDefaultSeconds = 60
/** Ours: one JSON-RPC request, large enough for a document in its arguments. Past it: 413. */
export const rpcBodyBytesMax = MB
/** Ours: how long postern relies on one check of a caller's rights, which is enough for a body that arrives promptly. Past it: postern checks the rights again before the next step. */
export const authorizationFreshMs = 50
/** Ours: nesting of a JSON-RPC request: a few levels, plus those of its arguments. Past it: 400, -32700. */
export const rpcDepthMax = 64
/** Ours: keys of all objects in one body: 80,000 took 100 ms to parse. Past it: 400. */
export const rpcKeysMax = 20_000
/** Ours: characters of the id of a JSON-RPC request, which answers, errors and notifications repeat. Past it: 400. */
export const rpcIdCharsMax = 512
/** Ours: characters of the id of a client's reply. At the endpoint of a namespace, this id is a sealed text that contains the id of the server's request, and names the server that sent the request. Past it: 400. */
export const replyIdCharsMax = 4096
/** Ours: values in the objects and arrays of one body. Past it: 400. */
export const rpcValuesMax = 150_000
/** Ours: the head of an MCP server's response. Past it: 502. */
export const upstreamHeadBytesMax = 32 * kB
/** Ours: bytes of a response that is not a stream, because postern holds such a response in memory. For a stream, only the bytes count that have arrived and that the client has not read yet. Past it: 502, or the stream ends. */
export const upstreamResponseBytesMax = 16 * MB
/** Ours: request bodies in use, and responses that are incomplete or not yet read by their client. One owner may have half of what the other owners leave. One token may have half of its owner's part. Past it: 429, or the stream ends. */
export const pendingBytesMax = 160 * MB
/** Ours: a response that postern parses and does not merely pass on: narrowed lists, `.tools`. Past it: 502. */
export const parsedResponseCharsMax = 4 * MB
/** Ours: bytes of memory for each character of a parsed response; usually a response takes three, and one with thousands of small objects takes seven. Counted against `pendingBytesMax`. Past it: 429. */
export const parsedResponseMemoryFactor = 8
/** Ours: time for the body of a response that is not a stream, after its head. Past it: 504. */
export const upstreamBodyTimeoutMs = 60_000
/** Ours: a whole stream, large enough for the messages of a long task. Past it: the stream ends. */
export const streamBytesMax = 256 * MB
/** Ours: one event of a stream that must be parsed. Past it: the stream ends. */
export const streamEventBytesMax = parsedResponseCharsMax
/** Ours: a stream without data; servers send comments to keep it open. Past it: the stream ends. */
export const streamIdleTimeoutMs = 5 * 60_000
/** Ours: lifetime of a stream. Past it: the stream ends. */
export const streamLifetimeMs = 60 * 60_000
/** Ours: interval at which an open stream's credential and connection are checked. Within it: a stream may stay open after its credential or its connection has ended. */
export const streamCheckIntervalMs = 500
/** Ours: requests in progress through one connection, streams included. One owner may have half of what the other owners leave. One token may have half of its owner's part. Past it: 429. */
export const concurrentCallsMax = 8000
/** Contract 16.13: characters of the session id of an MCP server, so that the sealed id fits 1,024 characters. Past it: 502. */
export const upstreamSessionIdCharsMax = 512
/** Ours: bytes of a response that postern writes in one piece. postern writes a larger response in several pieces, so that it knows when the client has read the response. Within it: the system's socket buffers hold a response up to this size. */
export const responseInOnePieceBytesMax = 256 * kB
/** Ours: how long postern keeps an idle connection to an MCP server, unless the server's own keep-alive timeout minus a second is shorter. Past it: postern closes the connection. */
export const socketIdleMs = 4000
/** Ours: characters of a server's list of tools that `.tools` reads, all pages together. Past it: 502. */
export const toolsCharsMax = 16 * MB
/** Ours: how long postern caches the addresses of a name; it connects to the address that it has checked. Past it: postern resolves the name again. */
export const dnsCacheTtlMs = 5000
/** Ours: concurrent DNS lookups; one owner may have half of what the others leave. Past it: 502, or the connection is created with the state `error`. */
export const pendingLookupsMax = 400
/** Ours: names whose addresses are cached, some hundred bytes each. Past it: resolved again. */
export const dnsCacheEntriesMax = 1000
/** Ours: bytes of an event stream that postern parses in one step; the step always extends to the end of the last line. Past it: the next step parses the rest. */
export const eventBytesAtOnce = 16 * kB

// The log, the audit log and the disk

/** Ours: refusals a second of one user or organization that the audit log writes one by one. Past it: one line names the caller and the number of further refusals. */
export const auditRefusalsPerCaller = 10
/** Ours: refusals a second of all callers together that the audit log writes one by one, beyond the first of each caller. Past it: one line for each caller gives the number of further refusals. */
export const auditRefusalsPerSecond = 100
/** Ours: method and name of a refused MCP request in the audit log; MCP's own names have at most 128. Past it: cut, with an ellipsis. */
export const auditNameCharsMax = 128
/** Ours: free disk space; LMDB may not survive a full disk. Below it: writes, mints and calls of tools are 503; reads, revocations and, for a while, deletions continue. */
export const freeBytesMin = 16 * MB
/** Ours: free disk space that postern keeps for revocations: deletions, and the lines of calls that end, may not use this space. An owner may delete thousands of connections, each with a line in the audit log, or have thousands of calls in progress. Below it: postern answers deletions of connections, servers and namespaces with 503, and writes no line for calls that end. */
export const deletionBytesMin = 8 * MB
/** Ours: free disk space that even revocations may not use; each revocation writes about ten kilobytes. Below it: all writes are 503. */
export const reservedBytesMin = 4 * MB
/**
 * Storage contract: bytes of text that postern puts before the joined records of a page, and as many after them. Past
 * it: only a bug in postern can reach this limit.
 */
export const wrapBytesMax = 512
/**
 * Storage contract: bytes of a key; LMDB allows 1,978 bytes with the page size that postern uses. Past it: postern
 * refuses the key before the write.
 */
export const storeKeyBytesMax = 1024

// Caches. Past each of these limits, postern reads or builds the data again, and nothing else happens.

/** Ours: tokens and API keys whose callers postern remembers until the directory changes. Past it: postern looks the caller up again. */
export const callersCachedMax = 10_000
/** Ours: cached pages of lists. Past it: built again. */
export const pageCacheBytesMax = 16 * MB

// Mocks

/** Ours: steps in which postern checks a value against somebody else's JSON Schema. Each of these counts as one step: a schema that applies to a part of the value, a keyword of this schema, and each name, item or 10 characters that the keyword looks at. A member of an object counts as four steps. 500,000 steps take 15 to 40 ms. Past it: the value is refused. */
export const schemaStepsMax = 500_000

// Reading

/** Ours: nesting of fixtures and exports; tool schemas nest deeper than requests. Past it: a problem of the file. */
export const fixtureDepthMax = 64
/** Ours: problems that a command prints. Past it: the command prints the number of further problems. */
export const problemsShownMax = 100
