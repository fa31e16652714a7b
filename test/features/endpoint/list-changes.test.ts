/** A failed look at the lists of a listener costs neither its place nor the change. */

import { expect, test } from 'bun:test'
import { ListChanges, type Listener, listenersOfKeyMax } from '../../../src/features/endpoint/list-changes.ts'

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
  return { ...{ namespace: 'acme', keyId: 'key', group: 'g', kinds, look, tell }, comment() {} }
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
