/**
 * The server killed in the middle of writes to the directory: servers, namespaces with a connection, API keys. What was
 * acknowledged must be there afterwards, in the records and in every list and index alike.
 */

import { run, sampleFolder, sendTo, startServer, workplace } from '../support/executable.ts'
import { random } from '../support/random.ts'
import { sampleKeys } from '../support/sample.ts'
import { collector, inTurn, type Trial } from './trial.ts'

/** What a thing is, after a kill: the last state that was acknowledged, or the one that was on its way. */
interface State {
  acknowledged: number
  sent: number
}

interface MadeNamespace {
  readonly name: string
  hasConnection: boolean
  deletion: 'none' | 'sent' | 'acknowledged'
}

export const directoryKill: Trial = {
  name: 'directory-kill',
  promise:
    'When the server is killed (kill -9), no acknowledged write to the directory is lost, and no write is stored in part',
  times: { full: 200, short: 3 },

  async run(times, seed) {
    const { broken, expect } = collector()
    const chance = random(seed)
    using place = workplace()
    const servers = new Map<string, State>()
    const keys: { key: string; id: string; deletion: 'none' | 'sent' | 'acknowledged' }[] = []
    const counts = { servers: 0, namespaces: 0, namespacesDeleted: 0, keys: 0, keysDeleted: 0, writes: 0 }
    const turns = inTurn({
      'servers written': () => counts.servers,
      'namespaces made': () => counts.namespaces,
      'namespaces deleted': () => counts.namespacesDeleted,
      'keys made': () => counts.keys,
      'keys deleted': () => counts.keysDeleted,
    })
    let namespaces: MadeNamespace[] = []
    const flags = ['--fixtures', sampleFolder, '--write-rate', '0', '--failure-rate', '0', '--namespaces-per-user', '0']

    // The last time, nothing is killed any more.
    for (let cycle = 0; cycle <= times; cycle += 1) {
      await using server = await startServer(place, flags)
      const send = sendTo(server)
      const ask = async (
        method: string,
        path: string,
        { key = sampleKeys.priya as string, body = {} as object } = {},
      ) => {
        const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
        const hasBody = method === 'PUT' || method === 'POST'
        const response = await send(path, { method, headers, ...(hasBody && { body: JSON.stringify(body) }) })
        return { status: response.status, json: (await response.json()) as Record<string, unknown> }
      }
      const said = (what: string) => () => `cycle ${cycle}: ${what}`

      await lookAtServers()
      await lookAtNamespaces()
      await lookAtKeys()
      if (cycle === times) break

      const happened = turns.happens(cycle)
      let isOver = false
      const repeat = async (act: () => Promise<void>) => {
        while (!isOver) await act().catch(() => {})
      }
      const writers = [
        ...['one', 'two', 'three'].map((id) => repeat(() => writeServer(`rk-${id}`))),
        repeat(makeNamespace),
        repeat(deleteNamespace),
        repeat(makeKey),
        repeat(deleteKey),
      ]
      await happened
      await Bun.sleep(chance.int(400))
      isOver = true
      await Promise.all([server.kill('SIGKILL'), ...writers])
      const { code, stderr } = await run(place, ['verify', '--data', place.data])
      expect(code === 0, said(`verify: ${stderr}`))

      async function lookAtServers(): Promise<void> {
        const { json } = await ask('GET', '/servers?namespace=priya&pageSize=100')
        const listed = json.servers as { qualifiedName: string; description: string }[]
        for (const [name, state] of servers) {
          const { status, json } = await ask('GET', `/servers/${name}`)
          const number = status === 200 ? Number(json.description) : 0
          const isRight = number === state.acknowledged || number === state.sent
          expect(isRight, said(`${name} is at ${number}, acknowledged ${state.acknowledged}, sent ${state.sent}`))
          const inList = Number(listed.find(({ qualifiedName }) => qualifiedName === name)?.description ?? 0)
          expect(inList === number, said(`${name} is at ${number}, and at ${inList} in the list`))
          servers.set(name, { acknowledged: number, sent: number })
        }
      }

      async function lookAtNamespaces(): Promise<void> {
        for (const { name, hasConnection, deletion } of namespaces) {
          const { status } = await ask('GET', `/namespaces/${name}`)
          const connection = (await ask('GET', `/connect/${name}/one`)).status
          if (deletion === 'none') expect(status === 200, said(`namespace ${name} is lost: ${status}`))
          if (deletion === 'acknowledged') expect(status === 404, said(`namespace ${name} is back: ${status}`))
          if (status === 200) {
            expect(!hasConnection || connection === 200, said(`the connection of ${name} is lost: ${connection}`))
            continue
          }
          expect(connection === 404, said(`${name} is deleted, and its connection got ${connection}`))
          const again = await ask('PUT', `/namespaces/${name}`)
          const { json } = await ask('GET', `/connect/${name}`)
          const isEmpty = again.status < 300 && (json.connections as unknown[] | undefined)?.length === 0
          expect(isEmpty, said(`${name} made again (${again.status}) has ${JSON.stringify(json)}`))
          // Who has a key owns a bounded number of them.
          await ask('DELETE', `/namespaces/${name}`)
        }
        namespaces = []
      }

      async function lookAtKeys(): Promise<void> {
        const { json } = await ask('GET', '/organizations/org_lumen/api-keys')
        const listed = new Set((json.apiKeys as { id: string }[]).map(({ id }) => id))
        for (const { key, id, deletion } of keys) {
          const { status } = await ask('GET', '/me', { key })
          if (deletion === 'none') expect(status === 200, said(`the key ${id} is lost: ${status}`))
          if (deletion === 'acknowledged') expect(status === 401, said(`the key ${id} works again: ${status}`))
          expect(listed.has(id) === (status === 200), said(`the key ${id} got ${status}, listed: ${listed.has(id)}`))
          // An organization has a bounded number of them.
          if (status === 200) await ask('DELETE', `/organizations/org_lumen/api-keys/${id}`)
        }
        keys.length = 0
        const rest = (await ask('GET', '/organizations/org_lumen/api-keys')).json.apiKeys as { id: string }[]
        for (const { id } of rest) await ask('DELETE', `/organizations/org_lumen/api-keys/${id}`)
      }

      async function writeServer(id: string): Promise<void> {
        const name = `priya/${id}`
        const state = servers.get(name) ?? { acknowledged: 0, sent: 0 }
        servers.set(name, state)
        counts.writes += 1
        // A number of its own; 0 stands for a server that is gone.
        state.sent = chance.chance(0.2) ? 0 : counts.writes
        const { status } = await ask(state.sent === 0 ? 'DELETE' : 'PUT', `/servers/${name}`, {
          body: { displayName: id, description: String(state.sent) },
        })
        if (status >= 300 && !(state.sent === 0 && status === 404)) throw new Error(`a write got ${status}`)
        state.acknowledged = state.sent
        counts.servers += 1
      }

      async function makeNamespace(): Promise<void> {
        counts.writes += 1
        const name = `rk-${counts.writes}`
        if ((await ask('PUT', `/namespaces/${name}`)).status >= 300) throw new Error('no namespace')
        const made: MadeNamespace = { name, hasConnection: false, deletion: 'none' }
        counts.namespaces += 1
        const body = { server: 'lumen', mock: { enabled: true }, name: 'one', metadata: {} }
        const { status } = await ask('PUT', `/connect/${name}/one`, { body })
        made.hasConnection = status < 300
        namespaces.push(made)
      }

      async function deleteNamespace(): Promise<void> {
        const one = namespaces.find(({ deletion }) => deletion === 'none')
        if (one === undefined) return Bun.sleep(1)
        one.deletion = 'sent'
        if ((await ask('DELETE', `/namespaces/${one.name}`)).status !== 200) return
        one.deletion = 'acknowledged'
        counts.namespacesDeleted += 1
      }

      async function makeKey(): Promise<void> {
        const { status, json } = await ask('POST', '/organizations/org_lumen/api-keys', { body: { name: 'torture' } })
        if (status !== 201) return Bun.sleep(1)
        counts.keys += 1
        keys.push({ key: String(json.key), id: String(json.id), deletion: 'none' })
      }

      async function deleteKey(): Promise<void> {
        const one = keys.find(({ deletion }) => deletion === 'none')
        if (one === undefined) return Bun.sleep(1)
        one.deletion = 'sent'
        const { status } = await ask('DELETE', `/organizations/org_lumen/api-keys/${one.id}`)
        if (status !== 200) return
        one.deletion = 'acknowledged'
        counts.keysDeleted += 1
      }
    }
    const figure = `${times} kills, ${counts.servers} servers written, ${counts.namespaces} namespaces and ${counts.keys} keys made and deleted: ${broken.length === 0 ? 'none lost' : `${broken.length} wrong`}`
    return { figure, broken, seen: turns.seen(times) }
  },
}
