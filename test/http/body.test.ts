/** Bodies, read strictly and never past their bound. */

import { expect, test } from 'bun:test'
import { allowanceOf } from '../../src/fairness/allowance.ts'
import { createFairness } from '../../src/fairness/fairness.ts'
import { strangerAt } from '../../src/fairness/owner.ts'
import { Shares } from '../../src/fairness/shares.ts'
import { isJson, mediaType, readBytes, readJsonBody } from '../../src/http/body.ts'
import { bodyMemoryFactor, chunkedBodyBytesMax, requestBodyBytesMax, rpcBodyBytesMax } from '../../src/limits.ts'
import { withAllowance } from '../support/allowance.ts'

const json = { 'content-type': 'application/json' }
const post = (body: RequestInit['body'], headers: Record<string, string> = json, bodyBytesMax = requestBodyBytesMax) =>
  withAllowance(new Request('http://a/', { method: 'POST', headers, body: body ?? null }), { bodyBytesMax })
const tooLarge = () => new Error('too large')

/** In pieces, so that no length is announced. */
function inPieces(pieces: readonly string[], isCut = false) {
  let taken = 0
  const body = new ReadableStream({
    pull(controller) {
      const piece = pieces[taken]
      if (piece !== undefined) {
        taken += 1
        controller.enqueue(Buffer.from(piece))
      } else if (isCut) controller.error(new Error('the client is gone'))
      else controller.close()
    },
  })
  return { body, taken: () => taken }
}

test('as many bytes as are allowed are read, announced or not, and not one more', async () => {
  const read = async (body: RequestInit['body'], headers = {}) =>
    Buffer.from(await readBytes(post(body, headers, 5), tooLarge)).toString()
  expect([await read('12345'), await read(null), await read(inPieces(['12', '345']).body)]).toEqual([
    '12345',
    '',
    '12345',
  ])
  await expect(read(inPieces(['123', '456']).body)).rejects.toThrow('too large')
  await expect(read('12345', { 'content-length': '6' })).rejects.toThrow('too large')
  expect(await read('12345', { 'content-length': '5' })).toBe('12345')
})

test('a client that breaks off has made a mistake of its own', async () => {
  const message = 'the request body ended before its announced length'
  await expect(readBytes(post(inPieces(['12'], true).body, {}, 5), tooLarge)).rejects.toMatchObject({
    code: 'invalid_request',
    message,
  })
  const announced = post(inPieces(['12'], true).body, { 'content-length': '5' }, 5)
  await expect(readBytes(announced, tooLarge)).rejects.toMatchObject({ code: 'invalid_request', message })
})

test('a body is JSON that says so, or nothing at all', async () => {
  expect(await readJsonBody(post('{"a":1}'))).toEqual({ a: 1 })
  expect(await readJsonBody(post('{"a":1}', { 'content-type': 'Application/JSON ; charset=x' }))).toEqual({ a: 1 })
  expect(await readJsonBody(post(null, {}))).toBeUndefined()
  expect(await readJsonBody(post('', { 'content-type': 'text/plain' }))).toBeUndefined()
  for (const type of ['text/plain', 'application/json2', ''])
    await expect(readJsonBody(post('{}', { 'content-type': type }))).rejects.toThrow(
      'content-type: must be application/json',
    )
  for (const [text, message] of [
    ['{', 'is not JSON'],
    ['{"a":1,"a":2}', 'a: is given twice'],
    ['{"a":12345678901234567890}', 'a: is a number that cannot be kept'],
    [`${'['.repeat(33)}${']'.repeat(33)}`, 'is nested deeper than 32 levels'],
    [`"${'x'.repeat(requestBodyBytesMax)}"`, `the body is too large: at most ${requestBodyBytesMax} bytes are read`],
  ] as const)
    await expect(readJsonBody(post(text))).rejects.toThrow(message)
})

test('a large one is read when it is its turn', async () => {
  const body = JSON.stringify('x'.repeat(500_000))
  let isRead = false
  const reading = readJsonBody(post(body, { ...json, 'content-length': String(body.length) }, 1e6)).then((text) => {
    isRead = true
    return text
  })
  // All that is ready without another turn of the event loop.
  for (let i = 0; i < 100; i += 1) await Promise.resolve()
  expect(isRead).toBe(false)
  expect(await reading).toHaveLength(500_000)
})

test('a media type is what stands before its parameters', () => {
  expect([mediaType('Text/HTML; a=b'), mediaType(null), mediaType(undefined)]).toEqual([
    'text/html',
    undefined,
    undefined,
  ])
  expect([isJson('application/json;a'), isJson('application/jsonp'), isJson(null)]).toEqual([true, false, false])
})

test('a body that comes in chunks counts no less than one that announces its length', async () => {
  const size = rpcBodyBytesMax
  const fairness = {
    ...createFairness(),
    memory: new Shares(4 * Math.max(size * bodyMemoryFactor, chunkedBodyBytesMax)),
  }
  const chunked = (length: number) => {
    const { body } = inPieces(['x'.repeat(length)])
    const request = new Request('http://a/', { method: 'POST', headers: { 'transfer-encoding': 'chunked' }, body })
    return withAllowance(request, { bodyBytesMax: size }, fairness)
  }
  // Large ones without a credential are counted apart from the small ones of their network.
  const network = strangerAt('192.0.2.1')
  const holder = { ...network, family: `\0large bodies of ${network.family}` }
  const free = () => {
    let bytes = 4 * size * bodyMemoryFactor
    while (!fairness.memory.take(holder, bytes)) bytes -= 1024
    fairness.memory.giveBack(holder, bytes)
    return bytes
  }
  const before = free()
  const one = chunked(size)
  expect(await readBytes(one, tooLarge)).toHaveLength(size)
  expect(free()).toBeLessThanOrEqual(before - size * bodyMemoryFactor)
  allowanceOf(one).end()
  expect(free()).toBe(before)
})

test('a body counts for its owner from before it is read until the request is answered', async () => {
  const fairness = { ...createFairness(), memory: new Shares(4 * 1000 * bodyMemoryFactor) }
  const asked = (size: number, isAnnounced: boolean) =>
    withAllowance(
      new Request('http://a/', {
        method: 'POST',
        ...(isAnnounced
          ? { headers: { 'content-length': String(size) }, body: 'x'.repeat(size) }
          : { body: inPieces(['x'.repeat(size)]).body }),
      }),
      {},
      fairness,
    )
  for (const isAnnounced of [true, false]) {
    const held = asked(1000, isAnnounced)
    expect(await readBytes(held, tooLarge)).toHaveLength(1000)
    await expect(readBytes(asked(1, isAnnounced), tooLarge)).rejects.toMatchObject({ code: 'rate_limited' })
    allowanceOf(held).end()
    const next = asked(1000, isAnnounced)
    expect(await readBytes(next, tooLarge)).toHaveLength(1000)
    allowanceOf(next).end()
  }
})
