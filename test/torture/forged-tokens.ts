/** Tokens that are not ours and tokens that are, shown to the executable. The table of confusions is `auth/service-token.test.ts`. */

import { generateKeyPairSync, sign } from 'node:crypto'
import { mintToken } from '../api/cases.ts'
import { sendTo, startServer, unlimited, workplace } from '../support/executable.ts'
import { type Random, random } from '../support/random.ts'
import { sampleKeys } from '../support/sample.ts'
import { collector, type Trial } from './trial.ts'

export const forgedTokens: Trial = {
  name: 'forged-tokens',
  promise: 'No forged or changed token is accepted, and no good one refused',
  times: { full: 10_000, short: 75 },

  async run(times, seed) {
    const { broken, expect } = collector()
    const chance = random(seed)
    using place = workplace()
    await using server = await startServer(place, unlimited)
    const send = sendTo(server)
    const status = async (token: string) => {
      const response = await send('/connect/ada?limit=1', { headers: { authorization: `Bearer ${token}` } })
      await response.arrayBuffer()
      return response.status
    }
    let accepted = 0
    let refused = 0
    for (let i = 0; i < times; i += 1) {
      const token = await mintToken(send, sampleKeys.ada, { policy: [{ ttl: 1800 + (i % 1000), operations: 'read' }] })
      const [other, how] = forge(chance, token)
      const [good, bad] = await Promise.all([status(token), other === token ? 401 : status(other)])
      if (good === 200) accepted += 1
      if (bad === 401) refused += 1
      expect(good === 200, () => `token ${i} is good and got ${good}`)
      expect(bad === 401, () => `${how}: got ${bad}: ${other}`)
    }
    const figure = `${refused} of ${times} forged refused, ${accepted} of ${times} good accepted`
    return { figure, broken, seen: { refused: [refused, times], accepted: [accepted, times] } }
  },
}

const stranger = generateKeyPairSync('ed25519')
const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

function forge(chance: Random, token: string): [token: string, how: string] {
  const parts = token.split('.') as [string, string, string]
  const text = (part: string) => Buffer.from(part, 'base64url').toString()
  const encode = (value: string) => Buffer.from(value).toString('base64url')
  const bySomeoneElse = (header: string, payload: string) => {
    const signed = `${header}.${payload}`
    return `${signed}.${sign(null, Buffer.from(signed), stranger.privateKey).toString('base64url')}`
  }
  const ways: Record<string, () => string> = {
    'a character changed': () => {
      const at = chance.int(token.length)
      return token.slice(0, at) + chance.pick([...alphabet, '.', '=', '%']) + token.slice(at + 1)
    },
    'a character taken out': () => {
      const at = chance.int(token.length)
      return token.slice(0, at) + token.slice(at + 1)
    },
    'a character put in': () => {
      const at = chance.int(token.length)
      return token.slice(0, at) + chance.pick([...alphabet]) + token.slice(at)
    },
    'a bit of the signature': () => {
      const bytes = Buffer.from(parts[2], 'base64url')
      const at = chance.int(bytes.length)
      bytes[at] = (bytes[at] as number) ^ (1 << chance.int(8))
      return `${parts[0]}.${parts[1]}.${bytes.toString('base64url')}`
    },
    'the order of the group added to S': () => {
      const bytes = Buffer.from(parts[2], 'base64url')
      const order = 2n ** 252n + 27742317777372353535851937790883648493n
      const s = BigInt(`0x${Buffer.from(bytes.subarray(32)).reverse().toString('hex')}`) + order
      Buffer.from(s.toString(16).padStart(64, '0'), 'hex').reverse().copy(bytes, 32)
      return `${parts[0]}.${parts[1]}.${bytes.toString('base64url')}`
    },
    'other claims': () => {
      const claims = JSON.parse(text(parts[1]))
      const wider = chance.pick([{ policy: [] }, { sub: 'grace' }, { exp: claims.exp + 3600 }, { org: 'org_lumen' }])
      return `${parts[0]}.${encode(JSON.stringify({ ...claims, ...wider }))}.${parts[2]}`
    },
    'another key with our kid': () => bySomeoneElse(parts[0], parts[1]),
    'another header': () => {
      const header = JSON.parse(text(parts[0]))
      const change = chance.pick([{ alg: 'none' }, { alg: 'HS256' }, { typ: 'JWT' }, { kid: 'x' }, { crit: [] }])
      return bySomeoneElse(encode(JSON.stringify({ ...header, ...change })), parts[1])
    },
    'no signature': () => `${parts[0]}.${parts[1]}.`,
    'parts in another order': () =>
      chance
        .pick([
          [1, 0, 2],
          [2, 1, 0],
          [0, 2, 1],
          [0, 1, 1],
          [0, 0, 2],
        ])
        .map((at) => parts[at])
        .join('.'),
    'bytes of chance': () =>
      [8 + chance.int(60), chance.int(300), 86]
        .map((length) => Array.from({ length }, () => chance.pick([...alphabet])).join(''))
        .join('.'),
    'another spelling of the last character': () => {
      const last = alphabet.indexOf(token.at(-1) as string)
      return token.slice(0, -1) + alphabet[(last & ~15) | ((last + 1 + chance.int(15)) & 15)]
    },
  }
  const how = chance.pick(Object.keys(ways))
  return [ways[how]?.() ?? '', how]
}
