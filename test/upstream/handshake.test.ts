/** TLS handshakes with servers that send too much, too slowly, or what is dear to verify. */

import { expect, test } from 'bun:test'
import { createFairness } from '../../src/fairness/fairness.ts'
import { Paces } from '../../src/fairness/pace.ts'
import { createAddresses, readAllowedUpstream } from '../../src/upstream/addresses.ts'
import { Handshake, handshakeBytesMax } from '../../src/upstream/handshake.ts'
import type { ResponseHandler } from '../../src/upstream/http-connection.ts'
import { createUpstream } from '../../src/upstream/pooled-upstream.ts'
import { unhurried } from '../support/pace.ts'
import { cert, key } from '../support/tls.ts'
import { until } from '../support/until.ts'

const holder = { keyId: 'key', family: 'key' }
/** Of one of the certificates. */
const certificateBytes = 405

/** What becomes of a request to a server that sends its certificate so many times. */
async function askedWith(count: number, fairness = createFairness()) {
  let requests = 0
  const fetch = () => {
    requests += 1
    return Response.json({})
  }
  const chain = Array.from({ length: count }, () => cert).join('\n')
  await using server = Bun.serve({ port: 0, hostname: '127.0.0.1', tls: { key, cert: chain }, fetch })
  const addresses = createAddresses({
    allowed: ['127.0.0.1'].flatMap((text) => readAllowedUpstream(text) ?? []),
    isPublicAllowed: false,
    isSelf: () => false,
  })
  const upstream = createUpstream(addresses, { authorities: [cert], fairness })
  const url = `https://127.0.0.1:${server.port}/`
  const answer = await upstream
    .send({ holder, url, headers: {}, body: '{}', timeoutMs: 60_000 })
    .then(({ status }) => status)
    .catch(({ message }) => message)
  return { answer, requests }
}

test('a server sends a few kilobytes of certificates, and with more it is sent nothing', async () => {
  const most = Math.floor(handshakeBytesMax / certificateBytes) - 5
  expect(await askedWith(most)).toEqual({ answer: 200, requests: 1 })
  const tooMany = `it sends more than ${handshakeBytesMax} bytes of certificates: shorten its chain`
  expect(await askedWith(most + 10)).toEqual({ answer: tooMany, requests: 0 })
})

test('verifying counts as the owner’s time', async () => {
  const spent: number[] = []
  class Noted extends Paces {
    override spend(_: string, milliseconds: number) {
      spent.push(milliseconds)
    }
  }
  await askedWith(1, { ...createFairness(), time: new Noted() })
  expect(Math.max(...spent)).toBeGreaterThan(0.05)
})

/** A socket that notes whether it is read, and a receiver whose places are counted. */
function scripted() {
  const seen = { isRead: true, places: 0, left: 0, spent: 0 }
  const socket = {
    pause() {
      seen.isRead = false
    },
    resume() {
      seen.isRead = true
    },
  } as unknown as Bun.Socket
  const receiver = {
    ...unhurried,
    spend(milliseconds: number) {
      seen.spent += milliseconds
    },
    async enterHandshake() {
      seen.places += 1
      return () => {
        seen.left += 1
      }
    },
  } as unknown as ResponseHandler
  return { seen, socket, receiver }
}

test('a handshake is read while it has a place, gives it to others after a while, and has one again', async () => {
  const { seen, socket, receiver } = scripted()
  const handshake = new Handshake()
  const turns = handshake.takeTurns(socket, receiver)
  expect(seen.isRead).toBe(false)
  await until(() => seen.isRead)
  expect([seen.places, seen.left]).toEqual([1, 0])
  await until(() => seen.places === 3)
  expect(seen.left).toBe(2)
  handshake.end(receiver)
  await turns
  expect(seen).toMatchObject({ isRead: true, places: 3, left: 3 })
})

test('one that has ended before its place gives it back at once, unread', async () => {
  const { seen, socket, receiver } = scripted()
  const { promise, resolve } = Promise.withResolvers<() => void>()
  const handshake = new Handshake()
  const turns = handshake.takeTurns(socket, { ...receiver, enterHandshake: () => promise })
  handshake.end()
  resolve(() => {
    seen.left += 1
  })
  await turns
  expect(seen).toMatchObject({ isRead: false, left: 1 })
})

test('the time is counted until the certificate is verified, or until the turn of the event loop ends', async () => {
  const { seen, receiver } = scripted()
  const handshake = new Handshake()
  expect(handshake.count(1000, receiver)).toBe(true)
  handshake.end(receiver)
  const verified = seen.spent
  expect(verified).toBeGreaterThan(0)
  await new Promise(setImmediate)
  expect(seen.spent).toBe(verified)
  expect(handshake.count(handshakeBytesMax - 1000, receiver)).toBe(true)
  await new Promise(setImmediate)
  expect(seen.spent).toBeGreaterThan(verified)
  expect(handshake.count(1, receiver)).toBe(false)
})

test('an owner’s handshakes wait for one another, and for nobody else’s', async () => {
  const { handshakes } = createFairness()
  const own = [await handshakes.enter(holder), await handshakes.enter(holder)]
  let third = false
  const waiting = handshakes.enter(holder).then((leave) => {
    third = true
    return leave
  })
  const other = await handshakes.enter({ keyId: 'other', family: 'other' })
  expect(third).toBe(false)
  for (const leave of [...own, other]) leave()
  ;(await waiting)()
  expect(third).toBe(true)
})
