/** A failed look at the lists of a listener costs neither its place nor the change. */

import { expect, test } from 'bun:test'
import {
  ListChanges,
  type Listener,
  listenersMax,
  listenersOfKeyMax,
} from '../../../src/features/endpoint/list-changes.ts'
import { keyOf, listingsVersionKey } from '../../../src/storage/keys.ts'

const digests = { tools: 'a', prompts: 'a', resources: 'a' }

/** Changes of a namespace whose version is `versions.now`; `tick` lets a second pass. */
function begin() {
  const versions = { now: 1 }
  let act = () => {}
  const getMany = (keys: readonly unknown[]) => Promise.resolve(keys.map(() => Uint8Array.of(versions.now)))
  const changes = new ListChanges({ getMany } as never, (_, given) => {
    act = given
    return () => {}
  })
  async function tick() {
    act()
    for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve))
  }
  return { changes, versions, tick }
}

function listener(look: Listener['look'], told: string[] = []): Listener {
  const kinds = new Set(['tools', 'prompts', 'resources'] as const)
  const tell = (kind: string) => void told.push(kind)
  return {
    ...{
      namespace: 'acme',
      view: undefined,
      holder: { keyId: 'key', family: 'key', userId: 'ada' },
      group: 'g',
      kinds,
      look,
      tell,
    },
    comment() {},
  }
}

test('a stream that could not begin takes no place of its key', async () => {
  const { changes } = begin()
  for (let n = 0; n < listenersOfKeyMax; n += 1) {
    const failing = changes.listen(listener(() => Promise.reject(new Error('too many requests'))))
    await expect(failing).rejects.toThrow('too many requests')
  }
  const close = await changes.listen(listener(() => Promise.resolve(digests)))
  close()
})

test('a change is not lost while the lists cannot be read', async () => {
  const { changes, versions, tick } = begin()
  const told: string[] = []
  let isFailing = false
  let tools = 'a'
  await changes.listen(
    listener(() => (isFailing ? Promise.reject(new Error('busy')) : Promise.resolve({ ...digests, tools })), told),
  )
  versions.now = 2
  tools = 'b'
  isFailing = true
  await tick()
  isFailing = false
  expect(told).toEqual([])
  await tick()
  expect(told).toEqual(['tools'])
})

test('an owner whose lists take long keeps nobody else waiting', async () => {
  const { changes, versions, tick } = begin()
  const told: string[] = []
  let tools = 'a'
  let release = () => {}
  let isSlow = false
  const slowly = () =>
    isSlow ? new Promise<typeof digests>((resolve) => (release = () => resolve(digests))) : Promise.resolve(digests)
  await changes.listen({ ...listener(slowly), holder: { keyId: 'b', family: 'b', userId: 'linus' }, group: 'h' })
  await changes.listen(listener(() => Promise.resolve({ ...digests, tools }), told))
  isSlow = true
  for (const next of ['b', 'c', 'd']) {
    versions.now += 1
    tools = next
    await tick()
  }
  expect(told).toEqual(['tools', 'tools', 'tools'])
  release()
  await tick()
})

test('an owner has half of the places with all of its keys', async () => {
  const { changes } = begin()
  const look = () => Promise.resolve(digests)
  const place = (n: number, userId: string) => {
    const keyId = `${userId}${Math.floor(n / 4)}`
    return changes.listen({ ...listener(look), holder: { keyId, family: keyId, userId } })
  }
  let taken = 0
  const fill = async () => {
    for (; taken < listenersMax; taken += 1) await place(taken, 'ada')
  }
  await expect(fill()).rejects.toThrow('has too many streams of list changes open')
  // Each key has half of what is left to it.
  expect(taken).toBeWithin(listenersMax / 2 - 10, listenersMax / 2 + 1)
  await place(0, 'linus')
})

test('a stream that is broken once keeps nobody from hearing of the next change', async () => {
  const { changes, versions, tick } = begin()
  let tools = 'a'
  let isBroken = true
  const told: string[] = []
  await changes.listen({
    ...listener(() => Promise.resolve({ ...digests, tools })),
    tell(kind) {
      if (isBroken) throw new TypeError('the stream is closed')
      told.push(kind)
    },
  })
  for (const next of ['b', 'c']) {
    versions.now += 1
    tools = next
    await tick()
    isBroken = false
  }
  expect(told).toEqual(['tools'])
})

test('lists are compared where their namespace, view or connections change, or a server, and for nothing else', async () => {
  const stored = new Map<string, string>()
  const textOf = (key: Uint8Array) => Buffer.from(key).toString('latin1')
  const getMany = async (keys: readonly Uint8Array[]) => keys.map((key) => Buffer.from(stored.get(textOf(key)) ?? '1'))
  let act = () => {}
  const changes = new ListChanges({ getMany } as never, (_, given) => {
    act = given
    return () => {}
  })
  const looks: string[] = []
  const listen = (namespace: string, view?: string) => {
    const name = `${namespace}/${view ?? ''}`
    const look = async () => {
      looks.push(name)
      return digests
    }
    return changes.listen({ ...listener(look), ...{ namespace, view, group: name } })
  }
  await listen('acme')
  await listen('acme', 'mine')
  await listen('lab')
  let version = 1
  const lookedAt = async (...written: readonly Uint8Array[]) => {
    looks.length = 0
    version += 1
    for (const key of written) stored.set(textOf(key), `version ${version}`)
    act()
    for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve))
    return looks
  }
  const directory = keyOf('directoryVersion')
  expect(await lookedAt()).toEqual([])
  // A revocation, a key, another's namespace.
  expect(await lookedAt(directory, keyOf('revocation', 'tok_1'), keyOf('namespace', 'other'))).toEqual([])
  expect(await lookedAt(directory, keyOf('namespace', 'acme'))).toEqual(['acme/', 'acme/mine'])
  expect(await lookedAt(directory, keyOf('view', 'acme', 'mine'))).toEqual(['acme/mine'])
  expect(await lookedAt(directory, keyOf('view', 'acme', 'other'))).toEqual([])
  expect(await lookedAt(keyOf('connectionsVersion', 'lab'))).toEqual(['lab/'])
  expect(await lookedAt(directory, listingsVersionKey)).toEqual(['acme/', 'acme/mine', 'lab/'])
  expect(await lookedAt(directory)).toEqual([])
})
