/**
 * The server killed in the middle of accepting pins. What was acknowledged must be accepted afterwards, two definitions
 * of one request together or not at all, and no definition that nobody accepted may be shown.
 */

import type { PinList } from '../../src/model/pins.ts'
import { run, sampleFolder, sendTo, startServer, withoutRates, workplace } from '../support/executable.ts'
import { random } from '../support/random.ts'
import { sampleKeys } from '../support/sample.ts'
import { localServer } from '../support/upstream.ts'
import { collector, inTurn, type Trial } from './trial.ts'

const names = ['search', 'store'] as const
const headers = { authorization: `Bearer ${sampleKeys.ada}`, 'content-type': 'application/json' }

export const pinKill: Trial = {
  name: 'pin-kill',
  promise:
    'When the server is killed (kill -9), postern forgets no definition that was accepted, and counts none as accepted that was not',
  times: { full: 100, short: 3 },

  async run(times, seed) {
    const { broken, expect } = collector()
    const chance = random(seed)
    using place = workplace()
    /** The version that the server lists. */
    let version = 0
    const upstream = localServer(async (request) => {
      if (request.method !== 'POST') return new Response(null, { status: 405 })
      const { method, id } = (await request.json()) as { method: string; id?: number }
      if (id === undefined) return new Response(null, { status: 202 })
      const tools = names.map((name) => ({ name, description: `Version ${version}`, inputSchema: { type: 'object' } }))
      const greeting = {
        protocolVersion: '2025-11-25',
        capabilities: { tools: {} },
        serverInfo: { name: 's', version: '1' },
      }
      return Response.json({ jsonrpc: '2.0', id, result: method === 'initialize' ? greeting : { tools } })
    })
    const state = { acknowledged: 0, sent: 0 }
    const counts = { accepted: 0, hidden: 0, lookedAt: 0 }
    const turns = inTurn({ 'definitions accepted': () => counts.accepted, 'definitions hidden': () => counts.hidden })
    const flags = ['--fixtures', sampleFolder, ...withoutRates, '--allow-upstream', '127.0.0.1']

    for (let cycle = 0; cycle <= times; cycle += 1) {
      await using server = await startServer(place, flags)
      const send = sendTo(server)
      const said = (what: string) => () => `cycle ${cycle}: ${what}`
      const listed = async (): Promise<string[]> => {
        const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' })
        const response = await send('/connect/ada/pinned/mcp', { method: 'POST', headers, body })
        const { result } = (await response.json()) as { result: { tools: { name: string }[] } }
        return result.tools.map(({ name }) => name)
      }
      if (cycle === 0) {
        const body = JSON.stringify({ mcpUrl: `http://127.0.0.1:${upstream.port}/mcp`, pins: 'block' })
        await (await send('/connect/ada/pinned', { method: 'PUT', headers, body })).text()
        await listed()
      } else {
        await lookAt()
      }
      if (cycle === times) break

      const happened = turns.happens(cycle)
      let isOver = false
      const writer = (async () => {
        while (!isOver) await accept().catch(() => {})
      })()
      await happened
      await Bun.sleep(chance.int(60))
      isOver = true
      await Promise.all([server.kill('SIGKILL'), writer])
      const { code, stderr } = await run(place, ['verify', '--data', place.data])
      expect(code === 0, said(`verify: ${stderr}`))

      /** The version that is accepted: of both, or of none. */
      async function lookAt(): Promise<void> {
        const shown = new Map<number, string[]>()
        for (const one of new Set([state.acknowledged, state.sent, -1])) {
          version = one
          shown.set(one, await listed())
        }
        counts.lookedAt += 1
        expect(shown.get(-1)?.length === 0, said(`what nobody accepted is shown: ${shown.get(-1)}`))
        const whole = [...shown].filter(([, found]) => found.length === names.length).map(([one]) => one)
        const isRight = whole.length === 1 && [...shown.values()].every(({ length }) => length === 0 || length === 2)
        expect(isRight, said(`acknowledged ${state.acknowledged}, sent ${state.sent}: ${JSON.stringify([...shown])}`))
        state.acknowledged = whole[0] ?? state.acknowledged
        state.sent = state.acknowledged
        version = state.acknowledged
      }

      async function accept(): Promise<void> {
        version = state.acknowledged + 1
        if ((await listed()).length > 0) {
          expect(false, said(`version ${version} is shown, and was not accepted`))
          return
        }
        counts.hidden += 1
        const { tools } = (await (await send('/connect/ada/pinned/.pins', { headers })).json()) as PinList
        const body = JSON.stringify({ accept: Object.fromEntries(tools.map(({ name, hash }) => [name, hash])) })
        state.sent = version
        const { status } = await send('/connect/ada/pinned/.pins', { method: 'POST', headers, body })
        if (status !== 200) throw new Error(`accepting got ${status}`)
        state.acknowledged = version
        counts.accepted += 1
      }
    }
    upstream.stop(true)
    const figure = `${times} kills, ${counts.hidden} new versions hidden until they were accepted, ${counts.accepted} of them acknowledged as accepted: ${broken.length === 0 ? 'none lost' : `${broken.length} wrong`}`
    return { figure, broken, seen: { ...turns.seen(times), 'restarts looked at': [counts.lookedAt, times] } }
  },
}
