/** Kept lists in memory, and those that are read from the store for the first time. */

import { LRUCache } from 'lru-cache'
import { allowanceOf } from '../../fairness/allowance.ts'
import type { ConnectionRef } from '../../model/connection.ts'
import { bytesPerCharacter } from '../../storage/bytes.ts'
import type { ConnectionPrivate, StoredConnection } from '../../storage/connections.ts'
import { keyOf } from '../../storage/keys.ts'
import type { Store } from '../../storage/store.ts'
import { askedAs } from '../gateway/connection-status.ts'
import { type Kept, readingRecord } from './kept-record.ts'

/**
 * Bytes of memory of kept lists: the largest, of 16 MB, counts twice, with up to fifty thousand definitions. Past it:
 * the least recently used one is read again.
 */
const readBytesMax = 64 * 2 ** 20
/** Bytes of memory for a definition besides its texts, with the objects that list it under names of either length. */
const keptDefinitionBytes = 600
/** Bytes of memory for a byte of a record of lists in its parsed form, and for each definition. */
const parsedBytesPerByte = 2
const definitionBytes = 100

export type KeptMemory = ReturnType<typeof createKeptMemory>

export function createKeptMemory(store: Pick<Store, 'get'>) {
  const read = new LRUCache<string, Kept>({
    maxSize: readBytesMax,
    sizeCalculation: ({ lists }) =>
      1000 +
      Object.values(lists)
        .flat()
        .reduce(
          (sum, { own, rest }) => sum + bytesPerCharacter * (rest.length + 3 * own.length) + keptDefinitionBytes,
          0,
        ),
  })
  return {
    get: (ref: ConnectionRef) => read.get(nameOf(ref)),
    set: (ref: ConnectionRef, kept: Kept) => void read.set(nameOf(ref), kept),
    /** The lists that are kept in the store, in the memory and time of the request's owner. Rejects with 429. */
    async of(
      request: Request,
      ref: ConnectionRef,
      { id, bytes, definitions }: NonNullable<ConnectionPrivate['list']>,
    ): Promise<Kept | undefined> {
      const known = () => {
        const kept = read.get(nameOf(ref))
        return kept?.id === id ? kept : undefined
      }
      const kept = known()
      if (kept !== undefined) return kept
      const parsedBytes = parsedBytesPerByte * bytes + definitionBytes * definitions
      // Requests of one owner read one after the other, and the first may have read it for all.
      const ifUnknown = async () =>
        known() === undefined ? store.get(keyOf('keptList', ref.namespace, ref.connectionId)) : undefined
      const parsed = await allowanceOf(request).parseRecord({ bytes, parsedBytes }, ifUnknown, readingRecord)
      if (parsed !== undefined) read.set(nameOf(ref), parsed)
      return parsed ?? known()
    },
  }
}

export const nameOf = ({ namespace, connectionId }: ConnectionRef) => `${namespace}/${connectionId}`

/** A hash of what is asked: it is kept beside the list, and the sealed headers are not. */
export function hashOf(stored: StoredConnection): string {
  const isMocked = stored.connection.mock?.enabled === true
  return Bun.SHA256.hash(`${askedAs(stored)}\0${isMocked}`, 'base64').slice(0, 22)
}
