/** Relations that must hold between bounds. */

import { expect, test } from 'bun:test'
import * as limits from '../src/limits.ts'

const kB = 1024
const { tokenLifetimeMaxSeconds, upstreamResponseBytesMax, parsedResponseCharsMax, slugCharsMax } = limits

test.each<[what: string, holds: boolean]>([
  ['a token lives no longer by default than it may', limits.tokenLifetimeDefaultSeconds <= tokenLifetimeMaxSeconds],
  ['a retired key outlives every token that it signed', limits.keyRetirementSeconds >= tokenLifetimeMaxSeconds],
  ['a revocation outlives every token that it ends', limits.revocationRetentionSeconds >= tokenLifetimeMaxSeconds],
  ['a token fits a request header of common proxies, with a quarter for the others', limits.tokenCharsMax <= 6 * kB],
  ['a page has no more rows by default than it may', limits.pageItemsDefault <= limits.pageItemsMax],
  // The longest key of the index: kind, namespace, NUL, term, connection id.
  [
    'the longest key fits the store',
    1 + slugCharsMax + 1 + 16 + limits.connectionIdCharsMax <= limits.storeKeyBytesMax,
  ],
  ['deletions leave room to revocations', limits.reservedBytesMin < limits.deletionBytesMin],
  ['writes leave room to deletions', limits.deletionBytesMin < limits.freeBytesMin],
  ['a response that is parsed is one that was accepted', parsedResponseCharsMax <= upstreamResponseBytesMax],
  ['four callers can have the largest response at once', 4 * upstreamResponseBytesMax <= limits.pendingBytesMax],
  ['an event that is parsed fits its stream', limits.streamEventBytesMax <= limits.streamBytesMax],
  ['the tools of a server fit what is parsed of it', parsedResponseCharsMax <= limits.toolsCharsMax],
  ['the first namespace has room for its words', limits.namespaceSearchedWordsMax <= limits.allSearchedWordsMax / 4],
  // Sealing adds nonce, tag and prefix, and encodes in base64url.
  ['a sealed session id fits 1,024 characters', ((limits.upstreamSessionIdCharsMax + 28) * 4) / 3 + 16 <= 1024],
])('%s', (_, holds) => expect(holds).toBe(true))
