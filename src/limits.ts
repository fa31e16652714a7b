/**
 * Every bound of the platform, in one place, with its source. Units come last in a name.
 * "Spec 8" and "Contract 3" are given from outside; "Ours" were chosen here, and say why.
 */

/** Spec 8: a token without a ttl lives one hour. */
export const tokenLifetimeDefaultSeconds = 60 * 60
/** Spec 8: no constraint, and so no token, outlives 24 hours. */
export const tokenLifetimeMaxSeconds = 24 * 60 * 60
/** Ours: how long a verifier may keep the list of public keys; a key is published that long before it signs. */
export const jwksMaxAgeSeconds = 300
/** Ours: a retired key is accepted until its last token is over, and a minute for clocks that differ. */
export const keyRetirementSeconds = tokenLifetimeMaxSeconds + 60
/** Contract 3: a token must fit a request header of common proxies (8 KiB) with room for the others. */
export const tokenCharsMax = 6144
/** Ours: clocks of one company differ by seconds; a token from further in the future is refused. */
export const issuedAheadMaxSeconds = 30

/** Spec 8. */
export const rpcKeyCharsMax = 200
/** Spec 8. */
export const rpcPatternCharsMax = 500
/** Ours: the worst pattern accepted takes about 30 ms on a value of 1 KiB; larger programs grow with it. */
export const rpcProgramSizeMax = 1000
/** Ours: each `\\p{…}` holds hundreds of ranges; a pattern of more took over a megabyte. */
export const rpcUnicodeClassesMax = 8
/** Ours: characters in the ranges of a pattern without case; folding a million took half a second. */
export const rpcFoldedCharactersMax = 2000
/** Ours: longer values do not match, so that the worst pattern stays within its 30 ms. */
export const rpcValueCharsMax = 1024
/** Ours: JSON-RPC bodies nest a few levels; a longer path names nothing real. */
export const rpcPathPartsMax = 16

/** Ours: more blocks than anyone can reason about; the token's length binds sooner. */
export const policyConstraintsMax = 16
/** Ours, for lists of namespaces, resources, operations and metadata objects. */
export const constraintListMax = 64
export const constraintMetadataPairsMax = 16
export const constraintRpcEntriesMax = 32
export const constraintMetadataKeyCharsMax = 64
export const constraintMetadataValueCharsMax = 256

/** Contract 2: namespaces and the two parts of a qualifiedName. */
export const slugCharsMax = 64
/** Contract 2. */
export const connectionIdCharsMax = 128
/** Ours: a storage key holds an organization and a user, and keys end at 1,024 bytes. */
export const organizationIdCharsMax = 128
export const userIdCharsMax = 128
/** Ours: what `postern keys list` can show on a line. */
export const apiKeyNameCharsMax = 64
/** Contract 2: a key of the user's own choice carries at least this much. */
export const apiKeyCharsMin = 32
/** Ours: four times a generated key; longer ones are tokens or mistakes. */
export const apiKeyCharsMax = 256

/** Spec 8. */
export const pageItemsMax = 100
/** Spec 8. */
export const pageItemsDefault = 100
/** Contract 5: past this a page ends early, with a cursor, so that no query walks a namespace. */
export const indexEntriesExaminedMax = 20_000
/** Ours: the longest sealed cursor is 214 characters; anything longer is not one. */
export const cursorCharsMax = 256
/** Ours: cursors remembered from when they were given, some hundred bytes each. */
export const cursorsKeptMax = 5000
/** Ours: filters are intersected, each with a cursor of its own in the store. */
export const listFiltersMax = 32
/** Ours: one turn of index work before other requests get theirs. */
export const turnMaxMs = 2

/** Ours: `POST /tokens` carries a policy that must fit a token of 6,144 characters. */
export const requestBodyBytesMax = 64 * 1024
/** Ours: refusals that the audit log writes one by one; a flood becomes a number. */
export const auditRefusalsPerSecond = 100
/** Ours: what a rate limit allows at once, in seconds of what it allows a second. */
export const burstSeconds = 20
/** Ours: names (keys, addresses) that a rate limit remembers, about 200 bytes each. */
export const rateLimitNamesMax = 20_000
/** Ours: tokens a second that one API key may mint, 1,000 at once; signing holds the process for 2 ms each. */
export const mintsPerSecondDefault = 50
/** Ours: bad credentials a second from one address, 400 at once: an office with an expired token stays under it. */
export const failuresPerSecondDefault = 20
/** Ours: deeper JSON is an attack on whoever reads it next. */
export const jsonDepthMax = 32
/** Ours: Bun closes a connection that sends or takes nothing for this long. */
export const idleTimeoutSeconds = 30
/** Ours: requests in flight are finished; one that is still being sent after this is not. Containers wait 10 s. */
export const stopPatienceMs = 5000

/** Ours, bytes of one record: a connection with its metadata, a server with its tools and their schemas. */
export const connectionBytesMax = 64 * 1024
export const serverBytesMax = 1024 * 1024
export const connectionNameCharsMax = 255
export const urlCharsMax = 2048
/** Ours: each pair is an index entry to write and to keep. */
export const connectionMetadataPairsMax = 64

/** Ours: tokens and keys resolved to callers, kept until the registry changes. About 1 KiB each. */
export const callersCachedMax = 10_000
/** Ours: lists that a caller was found to be allowed, by URL; a few kilobytes each at the most. */
export const grantsKeptMax = 4000
export const grantUrlCharsMax = 512
/** Ours: names of lists, a few hundred bytes each, of which some were asked for twice. */
export const pagesAskedMax = 1000
/** Ours: ready answers to lists. */
export const pageCacheBytesMax = 16 * 1024 * 1024
/** Ours: generations of namespaces, some hundred bytes each. */
export const generationsKeptMax = 4000
/** Ours: records of the registry (servers, namespaces, memberships, keys) kept decoded. */
export const registryCacheBytesMax = 16 * 1024 * 1024

/** Ours: below this much room on the disk nothing is written; reads go on. LMDB does not survive a full one for sure. */
export const freeBytesMin = 16 * 1024 * 1024
/** Ours: while the store cannot be written, every request says so; the log does once in this time. */
export const unavailableLoggedEveryMs = 10_000

/** Storage contract: a key's bytes. LMDB holds 1,978 with our page size. */
export const storeKeyBytesMax = 1024
