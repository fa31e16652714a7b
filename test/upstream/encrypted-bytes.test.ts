/** Bytes of TLS that carry nothing are counted, and ordinary records are not. */

import { expect, test } from 'bun:test'
import { EncryptedBytes, emptyBytesMax } from '../../src/upstream/encrypted-bytes.ts'
import { unhurried } from '../support/pace.ts'

/** How many chunks of so many bytes are received, of which so many are carried, until the connection is closed. */
function received(chunkBytes: number, carriedBytes: number) {
  let spent = 0
  const pace = {
    ...unhurried,
    spend(milliseconds: number) {
      spent += milliseconds
    },
  }
  const bytes = new EncryptedBytes()
  let chunks = 0
  while (chunks < 100_000 && bytes.receive(chunkBytes, pace)) {
    bytes.carry(carriedBytes)
    chunks += 1
  }
  return { chunks, spent: Math.round(spent) }
}

test('session tickets take their owner’s time, and a connection with many of them is closed', () => {
  const most = emptyBytesMax / 1024
  expect(received(1024, 0)).toEqual({ chunks: most + 1, spent: 1 })
  expect(received(512 * 1024, 0)).toEqual({ chunks: 1, spent: 5 })
})

test('a byte in a hundred hides no tickets', () => {
  expect(received(10_000, 100).chunks).toBeLessThan(15)
})

test('records of any length are none of them, down to one for each byte', () => {
  for (const carried of [16_384, 1000, 30, 1]) expect(received(carried + 22, carried).chunks).toBe(100_000)
})
