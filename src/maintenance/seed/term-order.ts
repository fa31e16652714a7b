/**
 * Index terms of very many connections, put in the order of their keys, nearly, which is what makes a large load fast.
 * Each takes 28 bytes: its digest, whose it is, and one 64-bit number, the digest's first four bytes above its
 * position, so that the runtime's own sort of numbers puts millions in order; connections are added in the order of
 * their ids, so positions within a term are too.
 */

import { termBytes, termKeyWriter } from '../../storage/keys.ts'
import type { Key } from '../../storage/store.ts'

export interface TermOrder {
  /** `index` is the connection's among the ids. */
  add(index: number, term: Uint8Array): void
  readonly count: number
  /** The keys of all, in order. Once. */
  keys(namespace: string, ids: readonly string[]): Generator<Key>
}

/** `expected` terms have room; more make more. */
export function createTermOrder(expected = 1024): TermOrder {
  let room = 0
  let terms = Buffer.alloc(0)
  let owners = new Uint32Array(0)
  let order = new BigUint64Array(0)
  let halves = new Uint32Array(0)
  let count = 0

  function makeRoom(wanted: number): void {
    room = wanted
    terms = Buffer.from(grow(terms, wanted * termBytes))
    owners = new Uint32Array(grow(owners, wanted * owners.BYTES_PER_ELEMENT))
    order = new BigUint64Array(grow(order, wanted * order.BYTES_PER_ELEMENT))
    halves = new Uint32Array(order.buffer)
  }

  return {
    get count() {
      return count
    },
    add(index, term) {
      if (count === room) makeRoom(Math.max(expected, room * 2))
      terms.set(term, count * termBytes)
      owners[count] = index
      // Little-endian: the low half first.
      halves[count * 2] = count
      halves[count * 2 + 1] = terms.readUInt32BE(count * termBytes)
      count += 1
    },
    *keys(namespace, ids) {
      const { lengthOf, write } = termKeyWriter(namespace)
      order.subarray(0, count).sort()
      for (let i = 0; i < count; i += 1) {
        const position = halves[i * 2] as number
        const id = ids[owners[position] as number] as string
        const key = Buffer.allocUnsafe(lengthOf(id))
        write(key, 0, terms, position * termBytes, id)
        yield key
      }
    },
  }
}

function grow({ buffer, byteOffset, byteLength }: ArrayBufferView, bytes: number): ArrayBuffer {
  const larger = new ArrayBuffer(bytes)
  new Uint8Array(larger).set(new Uint8Array(buffer, byteOffset, byteLength))
  return larger
}
