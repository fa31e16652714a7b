/**
 * Joined lists that were answered a moment ago. Joining twenty lists of twenty-five tools takes sixteen times as long
 * as sending the answer, and clients of one caller ask for the same list again and again.
 */

import { LRUCache } from 'lru-cache'
import { credentialIdOf } from '../../auth/authenticate.ts'
import type { Clock } from '../../clock.ts'
import { utf8Of } from '../../storage/bytes.ts'
import { keyOf } from '../../storage/keys.ts'
import type { Store } from '../../storage/store.ts'
import { versionText } from '../../storage/versions.ts'
import type { ListKind } from '../gateway/tool-requests.ts'
import type { EndpointRequest } from './endpoint-request.ts'
import type { KeptLists } from './kept-lists.ts'

/**
 * Milliseconds for which an answer is repeated. Everything that changes it is noticed at once, but lists that have
 * become old are read again only where they are joined. Past it: the lists are joined again.
 */
const repeatedMs = 1000
/** Bytes of memory of all answers that are kept. Past it: the least recently used one is made again. */
const answersBytesMax = 16 * 2 ** 20

interface Kept {
  readonly versions: string
  /** By the monotonic clock. */
  readonly at: number
  /** JSON, as it is sent. */
  readonly result: Uint8Array
}

export function createJoinedAnswers(
  store: Pick<Store, 'get'>,
  lists: Pick<KeptLists, 'changes'>,
  clock: Pick<Clock, 'monotonic'>,
) {
  const answers = new LRUCache<string, Kept>({
    maxSize: answersBytesMax,
    maxEntrySize: answersBytesMax / 4,
    sizeCalculation: ({ result }) => result.length + 500,
  })
  /** The result of this list, which `make` makes if it must be made. Rejects with what `make` rejects with. */
  return async (asked: EndpointRequest, kind: ListKind, make: () => Promise<string>): Promise<Uint8Array> => {
    const { context, namespace, view, options, message } = asked
    const { directory, caller } = context
    // The versions first: a change while the lists are joined makes the answer an old one.
    const version = versionText(await store.get(keyOf('connectionsVersion', namespace.namespace)))
    const versions = `${directory.version} ${version} ${lists.changes}`
    const what = [credentialIdOf(caller), namespace.namespace, view?.name ?? '', kind, message.era]
    const key = JSON.stringify([...what, options.length, options.hasStatus, options.isSearch])
    const kept = answers.get(key)
    if (kept?.versions === versions && clock.monotonic() - kept.at < repeatedMs) return kept.result
    const at = clock.monotonic()
    // Not the text, which its every answer would encode again: a third of the time of an answer of 100 kB.
    const result = utf8Of(await make())
    if (version !== '' && directory.version !== '') answers.set(key, { versions, at, result })
    return result
  }
}
