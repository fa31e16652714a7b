/** Streams of events, looked into: whole events out, whatever pieces they came in. */

import { expect, test } from 'bun:test'
import { relayStream } from '../../../src/features/gateway/stream.ts'
import { random } from '../../support/random.ts'

function streamInPieces(text: string, sizeOf: () => number): ReadableStream<Uint8Array> {
  const bytes = Buffer.from(text)
  let at = 0
  return new ReadableStream({
    pull(controller) {
      if (at >= bytes.length) return controller.close()
      const end = at + sizeOf()
      controller.enqueue(Uint8Array.prototype.slice.call(bytes, at, end))
      at = end
    },
  })
}
const read = async (text: string, sizeOf: () => number) => {
  let ended = 0
  const out = relayStream(streamInPieces(text, sizeOf), {
    rewrite: async (data) => data.toUpperCase(),
    onEnd: () => (ended += 1),
  })
  const result = await new Response(out).text()
  return { result, ended }
}

test('events come out the same from any pieces, with what is not theirs kept', async () => {
  const text = ': hello\n\nid: 1\nevent: message\ndata: {"a":"é€😀"}\n\nretry: 500\r\n\r\ndata: one\ndata: two\n\n'
  const whole = await read(text, () => text.length * 4)
  expect(whole.result).toContain('data: {"A":"É€😀"}\n')
  expect(whole.result).toContain('data: ONE\ndata: TWO\n')
  for (let seed = 1; seed <= 200; seed += 1) {
    const chance = random(seed)
    expect({ seed, ...(await read(text, () => 1 + chance.int(5))) }).toEqual({ seed, ...whole })
  }
})

test('a reader that was behind gets hundreds of thousands of events, in turns with others', async () => {
  for (const event of ['data:{}\n\n', ':\n', 'id:\r']) {
    let turns = 0
    let isOver = false
    const tick = () => {
      turns += 1
      if (!isOver) setImmediate(tick)
    }
    setImmediate(tick)
    // More in all than one event may have.
    const count = Math.ceil((5 * 2 ** 20) / event.length)
    const { result, ended } = await read(event.repeat(count), () => 16 * 2 ** 20)
    isOver = true
    expect([ended, turns > 10]).toEqual([1, true])
    if (event.startsWith('data')) expect(result.split('\n\n')).toHaveLength(count + 1)
  }
})

test('a long event in many small pieces is looked through once', async () => {
  // Fifty thousand pieces of one line: looked through again with each, it would take minutes.
  const line = 'x'.repeat(3 * 2 ** 20)
  const { result, ended } = await read(`data: ${line}\n\n`, () => 64)
  expect([result.length, ended]).toEqual([line.length + 8, 1])
})
