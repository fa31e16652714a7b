/**
 * Sorts the index terms of very many connections into almost exact key order, which makes a large load fast. Each term
 * takes 28 bytes: its digest (16), the index of its connection (4), and a 64-bit number (8) with the digest's first
 * four bytes above the term's position. The runtime's native sort of such numbers orders millions. Connections are
 * added in the order of their ids, so positions keep that order within a term. Two digests with the same first four
 * bytes may be out of order, which costs time only.
 */

import { termKeyWriter } from '../../storage/keys.ts'
import { termBytes } from '../../storage/record-kinds.ts'
import type { Key } from '../../storage/store.ts'

/** Terms of one namespace. First all `add`, then `keys`. The arrays double when they are full. */
export function createTermOrder() {
  let room = 0
  let terms = Buffer.from(new ArrayBuffer(0))
  let owners = new Uint32Array(0)
  let order = new BigUint64Array(0)
  /** `order` as pairs of 32-bit halves: writing them avoids a BigInt for each term. */
  let halves = new Uint32Array(0)
  let count = 0

  function makeRoom(wanted: number): void {
    room = wanted
    terms = Buffer.from(terms.buffer.transfer(wanted * termBytes))
    owners = new Uint32Array(owners.buffer.transfer(wanted * owners.BYTES_PER_ELEMENT))
    order = new BigUint64Array(order.buffer.transfer(wanted * order.BYTES_PER_ELEMENT))
    halves = new Uint32Array(order.buffer)
  }

  return {
    get count() {
      return count
    },
    /** Adds a term of the connection with this index in `rows`. Indexes must not decrease. */
    add(index: number, term: Uint8Array): void {
      if (count === room) makeRoom(Math.max(1024, room * 2))
      terms.set(term, count * termBytes)
      owners[count] = index
      // Little-endian: the low half is stored first.
      halves[count * 2] = count
      halves[count * 2 + 1] = terms.readUInt32BE(count * termBytes)
      count += 1
    },
    /** The index keys of all terms, in order. May be called once: it sorts in place. */
    *keys(namespace: string, rows: readonly { readonly connectionId: string }[]): Generator<Key> {
      const { lengthOf, write } = termKeyWriter(namespace)
      order.subarray(0, count).sort()
      for (let i = 0; i < count; i += 1) {
        const position = halves[i * 2] as number
        const id = rows[owners[position] as number]?.connectionId as string
        const key = Buffer.allocUnsafe(lengthOf(id))
        write(key, 0, terms, position * termBytes, id)
        yield key
      }
    },
  }
}
