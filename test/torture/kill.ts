/**
 * The server and every command that writes beside it, killed in the middle of it, again and again on one data folder.
 * What was acknowledged must be there afterwards, whole.
 */

import { statSync } from 'node:fs'
import { join } from 'node:path'
import { mintToken } from '../api/cases.ts'
import { executable, run, sendTo, startServer, unlimited, type Workplace, workplace } from '../support/executable.ts'
import { random } from '../support/random.ts'
import { sampleKeys } from '../support/sample.ts'
import { collector, inTurn, type Trial } from './trial.ts'

/** A namespace that is imported anew as a whole, over and over: all its rows are of one import. */
const rowsAnImport = 150
/** Of what was acknowledged in earlier cycles, so many are looked at again. */
const lookedAtAgain = 40

interface Acknowledged {
  readonly keys: string[]
  readonly revoked: string[]
  imported: number
  /** By connection: the last number whose write was acknowledged, and the last that was sent. */
  readonly written: Map<string, { acknowledged: number; sent: number }>
  /** Connections that are written once: what is written again hides that it was lost before. */
  readonly kept: string[]
  writes: number
}

export const kill: Trial = {
  name: 'kill',
  promise:
    'When the server and all commands are killed (kill -9), no acknowledged write is lost, and no write is stored in part',
  times: { full: 200, short: 2 },

  async run(times, seed) {
    const { broken, expect } = collector()
    const chance = random(seed)
    using place = workplace()
    const acknowledged: Acknowledged = { keys: [], revoked: [], imported: 0, written: new Map(), kept: [], writes: 0 }
    let imports = 0
    let inode: number | undefined
    let overwritten = 0
    const turns = inTurn({
      'connections written once': () => acknowledged.kept.length,
      'keys made': () => acknowledged.keys.length,
      imports: () => acknowledged.imported,
      'tokens revoked': () => acknowledged.revoked.length,
      'connections written again and again': () => overwritten,
    })

    // The last time, nothing is killed any more.
    for (let cycle = 0; cycle <= times; cycle += 1) {
      await using server = await startServer(place, unlimited)
      // Somebody who cleans up temporary folders would look like a loss of everything.
      const { ino } = statSync(join(place.data, 'store', 'data.mdb'))
      expect(inode === undefined || inode === ino, () => `cycle ${cycle}: the store is another file than before`)
      inode = ino
      const send = sendTo(server)
      const answer = async (credential: string) => {
        const response = await send('/connect/ada?limit=1', { headers: { authorization: `Bearer ${credential}` } })
        return { status: response.status, text: await response.text() }
      }
      const some = (all: readonly string[]) => [
        ...all.slice(-lookedAtAgain),
        ...(all.length > 0 ? [chance.pick(all)] : []),
      ]
      if (cycle === 0)
        await send('/namespaces/kept', { method: 'PUT', headers: { authorization: `Bearer ${sampleKeys.priya}` } })
      for (const [at, key] of some(acknowledged.keys).entries()) {
        const { status, text } = await answer(key)
        expect(
          status === 200,
          () => `cycle ${cycle}: an acknowledged key (${at} of those looked at) got ${status} ${text}`,
        )
      }
      for (const id of some(acknowledged.kept)) {
        const { status } = await send(`/connect/kept/${id}`, {
          headers: { authorization: `Bearer ${sampleKeys.priya}` },
        })
        expect(status === 200, () => `cycle ${cycle}: acknowledged connection ${id} got ${status}`)
      }
      for (const token of some(acknowledged.revoked)) {
        const { status, text } = await answer(token)
        expect(status === 401, () => `cycle ${cycle}: an acknowledged revocation is lost: ${status} ${text}`)
      }
      const response = await send('/connect/torture?limit=100', {
        headers: { authorization: `Bearer ${sampleKeys.operator}` },
      })
      if (acknowledged.imported > 0 || response.status === 200) {
        const { connections = [] } = (await response.json()) as { connections?: { name: string }[] }
        const imports = new Set(connections.map(({ name }) => Number(name)))
        const [at = -1] = imports
        expect(imports.size === 1 && connections.length === 100, () => `cycle ${cycle}: torn: rows of ${[...imports]}`)
        expect(
          at >= acknowledged.imported,
          () => `cycle ${cycle}: import ${acknowledged.imported} is lost, ${at} is there`,
        )
      }

      // Each connection as it was last acknowledged, or as a write that was under way when the end came.
      for (const [id, { acknowledged: last, sent }] of acknowledged.written) {
        const found = await (
          await send(`/connect/priya?name=${id}`, { headers: { authorization: `Bearer ${sampleKeys.priya}` } })
        ).json()
        const { connections = [] } = found as { connections?: { metadata: { number: number } }[] }
        const number = connections[0]?.metadata.number ?? 0
        const isRight = number === last || number === sent
        expect(isRight, () => `cycle ${cycle}: connection ${id} is at ${number}, acknowledged ${last}, sent ${sent}`)
        acknowledged.written.set(id, { acknowledged: number, sent: number })
      }
      if (cycle === times) break

      const happened = turns.happens(cycle)
      const children = new Set<Bun.Subprocess>()
      let isOver = false
      const command = async (args: readonly string[], acknowledge: (stdout: string) => void) => {
        const child = Bun.spawn([executable, ...args, '--data', place.data], {
          cwd: place.folder,
          stdout: 'pipe',
          stderr: 'ignore',
        })
        children.add(child)
        const stdout = await new Response(child.stdout).text()
        if ((await child.exited) === 0) acknowledge(stdout)
        children.delete(child)
      }
      const repeat = async (act: () => Promise<void>) => {
        while (!isOver) await act().catch(() => {})
      }
      const put = async (id: string) => {
        const state = acknowledged.written.get(id) ?? { acknowledged: 0, sent: 0 }
        acknowledged.written.set(id, state)
        acknowledged.writes += 1
        // A number of its own; 0 stands for a connection that is gone.
        state.sent = chance.chance(0.1) ? 0 : acknowledged.writes
        const body = { server: 'lumen', mock: { enabled: true }, name: id, metadata: { number: state.sent } }
        const { status } = await send(`/connect/priya/${id}`, {
          method: state.sent === 0 ? 'DELETE' : 'PUT',
          headers: { authorization: `Bearer ${sampleKeys.priya}`, 'content-type': 'application/json' },
          ...(state.sent > 0 && { body: JSON.stringify(body) }),
        })
        if (status < 300) {
          state.acknowledged = state.sent
          overwritten += 1
        } else if (state.sent === 0 && status === 404) state.acknowledged = 0
        else throw new Error(`a write got ${status}`)
      }
      const keep = async () => {
        acknowledged.writes += 1
        const id = `w-${acknowledged.writes}`
        const { status } = await send(`/connect/kept/${id}`, {
          method: 'PUT',
          headers: { authorization: `Bearer ${sampleKeys.priya}`, 'content-type': 'application/json' },
          body: JSON.stringify({ server: 'lumen', mock: { enabled: true } }),
        })
        if (status < 300) acknowledged.kept.push(id)
      }
      const writers = [
        ...['one', 'two', 'three'].map((id) => repeat(() => put(`k-${id}`))),
        repeat(keep),
        repeat(() => command(['keys', 'create', '--user', 'ada'], (stdout) => acknowledged.keys.push(stdout.trim()))),
        repeat(async () => {
          const token = await mintToken(send, sampleKeys.ada, { policy: [{ ttl: '24h' }] })
          await command(['token', 'revoke', token], () => acknowledged.revoked.push(token))
        }),
        repeat(async () => {
          imports += 1
          const number = imports
          const file = await importFile(place, number)
          await command(['import', file], () => {
            acknowledged.imported = Math.max(acknowledged.imported, number)
          })
        }),
      ]
      await happened
      await Bun.sleep(chance.int(400))
      isOver = true
      const killed = [server.kill('SIGKILL')]
      for (const child of children) child.kill('SIGKILL')
      await Promise.all([...killed, ...writers])

      const { code, stderr } = await run(place, ['verify', '--data', place.data])
      expect(code === 0, () => `cycle ${cycle}: verify: ${stderr}`)
    }
    const { keys, revoked, imported, writes } = acknowledged
    const figure = `${times} kills, ${writes} connections written over HTTP, ${keys.length} keys made, ${revoked.length} tokens revoked, imports up to number ${imported}; of all that was acknowledged, none lost`
    return {
      figure: broken.length === 0 ? figure : figure.replace('none lost', `${broken.length} wrong`),
      broken,
      seen: turns.seen(times),
    }
  },
}

/** All rows carry the number of the import, so that rows of two would show. */
async function importFile(place: Workplace, number: number): Promise<string> {
  const organizationId = 'org_torture'
  const connections = Array.from({ length: rowsAnImport }, (_, i) => ({
    kind: 'connection',
    namespace: 'torture',
    connection: {
      connectionId: `row-${i}`,
      name: String(number),
      mcpUrl: null,
      metadata: { number: String(number) },
      transport: 'http',
      createdAt: '2026-03-02T09:00:00.000Z',
      status: { state: 'connected' },
    },
  }))
  const records = [
    { kind: 'organization', organization: { organizationId, name: 'Torture' } },
    { kind: 'namespace', namespace: { namespace: 'torture', organizationId } },
    ...connections,
  ]
  const lines = [
    { postern: 'export', version: 1, secret: '0000000000000000' },
    ...records,
    { postern: 'end', records: records.length },
  ]
  const file = join(place.folder, 'torture.jsonl')
  await Bun.write(file, lines.map((line) => JSON.stringify(line)).join('\n'))
  return file
}
