/** Chains of tokens, minted by the application one from the other, and requests that each link is asked to allow. */

import type { Constraint } from '../../src/model/constraint.ts'
import { type Block, readPolicy } from '../../src/policy/block.ts'
import { type Access, decide } from '../../src/policy/decide.ts'
import { mintToken } from '../api/cases.ts'
import { createTestPlatform } from '../support/platform.ts'
import { type Random, random } from '../support/random.ts'
import { sampleKeys } from '../support/sample.ts'
import { collector, type Trial } from './trial.ts'

const requestsAPair = 100

export const attenuation: Trial = {
  name: 'attenuation',
  promise: 'A child may do nothing that its parent may not, and never outlives it',
  times: { full: 100_000, short: 10_000 },

  async run(times, seed) {
    const { broken, expect } = collector()
    const chance = random(seed)
    const platform = await createTestPlatform()
    let allowed = 0
    let refused = 0
    let parent = await mintToken(platform.fetch, sampleKeys.ada, { policy: [pickConstraint(chance)] })
    for (let pair = 0; pair * requestsAPair < times; pair += 1) {
      // Now and then a new beginning, so that chains do not only narrow.
      if (pair % 3 === 0) {
        parent = await mintToken(
          platform.fetch,
          sampleKeys.ada,
          chance.chance(0.3) ? {} : { policy: [pickConstraint(chance)] },
        )
      }
      const child = await mintToken(platform.fetch, parent, { policy: [pickConstraint(chance)] })
      const [above, below] = [parent, child].map(readClaims) as [Claims, Claims]
      expect(below.exp <= above.exp, () => `pair ${pair}: the child outlives its parent`)
      for (let i = 0; i < requestsAPair; i += 1) {
        const access = pickAccess(chance)
        const byParent = decide(above.blocks, access).allowed
        const byChild = decide(below.blocks, access).allowed
        if (byChild) allowed += 1
        else refused += 1
        expect(byParent || !byChild, () => JSON.stringify({ pair, access, above, below }))
      }
      parent = child
    }
    const figure = `${times} combinations of parent, child and request: the child allowed ${allowed} requests, and refused ${refused}`
    return { figure, broken, seen: { allowed: [allowed, 1], refused: [refused, 1] } }
  },
}

interface Claims {
  readonly exp: number
  readonly blocks: Block[]
}

function readClaims(token: string): Claims {
  const { exp, policy } = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
  if (policy.length === 0) return { exp, blocks: [] }
  const read = readPolicy(policy)
  if ('problem' in read) throw new Error(JSON.stringify(read.problem))
  return { exp, blocks: read.blocks }
}

const namespaces = ['ada', 'northwind', 'lumen']
const texts = ['a', 'b', '']

function pickConstraint(chance: Random): Constraint {
  const oneOrMany = <T>(pick: () => T): T | T[] =>
    chance.chance(0.4) ? pick() : Array.from({ length: 1 + chance.int(3) }, pick)
  const metadata = () =>
    Object.fromEntries(
      Array.from({ length: 1 + chance.int(2) }, () => [
        chance.pick(['team', 'env', 'connectionId']),
        chance.pick(texts),
      ]),
    )
  const rules = () =>
    Object.fromEntries(
      Array.from({ length: 1 + chance.int(2) }, () => [
        chance.pick(['method', 'params.name', 'id', 'params.arguments.to']),
        chance.pick(['^tools/call$', 'call', '^a', '.', '^$', 'b$', '[0-2]']),
      ]),
    )
  const fields = {
    namespaces: () => oneOrMany(() => chance.pick(namespaces)),
    resources: () => oneOrMany(() => chance.pick(['connections', 'servers', 'namespaces', 'skills'])),
    operations: () => oneOrMany(() => chance.pick(['read', 'write', 'execute'])),
    metadata: () => oneOrMany(metadata),
    ttl: () => chance.pick([60, '30m', '24h', 86_400, '1s']),
    rpcReqMatch: rules,
  }
  const names = Object.keys(fields) as (keyof typeof fields)[]
  const first = chance.pick(names)
  const chosen = names.filter((name) => name === first || chance.chance(0.15))
  return Object.fromEntries(chosen.map((name) => [name, fields[name]()])) as Constraint
}

function pickAccess(chance: Random): Access {
  const metadata = Object.fromEntries(
    ['team', 'env'].filter(() => chance.chance(0.6)).map((name) => [name, chance.pick([...texts, 1, null])]),
  )
  const rpc = {
    jsonrpc: '2.0',
    id: chance.int(4),
    method: chance.pick(['tools/call', 'ping', 'a']),
    params: chance.pick<unknown>([null, { name: 'a' }, { name: 'b', arguments: { to: 'a' } }]),
  }
  const access: Access = {
    namespace: chance.pick(namespaces),
    resource: chance.pick(['connections', 'connections', 'servers', 'namespaces', 'skills']),
    operation: chance.pick(['read', 'write', 'execute']),
    metadata: chance.pick(['none', 'narrowed', { connectionId: chance.pick(texts), metadata }]),
  }
  return access.operation === 'execute' || chance.chance(0.2) ? { ...access, rpc } : access
}
