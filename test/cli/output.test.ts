/** What commands print for people. */

import { afterEach, describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { verifyAudit } from '../../src/cli/audit.ts'
import { contextOf } from '../../src/cli/client/context.ts'
import { callTool } from '../../src/cli/client/tool-commands.ts'
import { countText } from '../../src/cli/count-text.ts'
import { table } from '../../src/cli/table.ts'
import { firstHash, formatLine } from '../../src/ops/audit-chain.ts'
import { workplace } from '../support/workplace.ts'

function terminal() {
  let stdout = ''
  const write = (text: string) => {
    stdout += text
  }
  return { stdout: write, stderr: () => {}, isStdoutClosed: () => false, text: () => stdout }
}

test('a cell shows what nobody would see, so that names do not look alike', () => {
  const cells = [['tool'], ['get_a'], ['get_a\u200b'], ['get\u{e0041}_a\u00ad'], ['a\u001b[2J\n']]
  expect(table(cells).split('\n')).toEqual([
    'tool',
    'get_a',
    'get_a\\u{200b}',
    'get\\u{e0041}_a\\u{ad}',
    'a\\u001b[2J\\u000a',
    '',
  ])
})

describe('a table', () => {
  const { isTTY } = process.stdout
  afterEach(() => {
    process.stdout.isTTY = isTTY
  })

  test('has headings in columns on a terminal, and is divided by tabs elsewhere', () => {
    const printed = (onTerminal: boolean) => {
      process.stdout.isTTY = onTerminal
      const out = terminal()
      contextOf({ url: 'http://x' }, out, 'a-key').show({}, ['USER', 'ROLE'], [['ada', 'owner']])
      return out.text()
    }
    expect(printed(true)).toBe('USER  ROLE\nada   owner\n')
    expect(printed(false)).toBe('ada\towner\n')
  })

  test('that is empty is said to be, on a terminal alone', () => {
    const said = (onTerminal: boolean, json = false) => {
      process.stdout.isTTY = onTerminal
      const [out, aside] = [terminal(), terminal()]
      contextOf({ url: 'http://x', json }, { ...out, stderr: aside.stdout }, 'a-key').show({}, ['USER', 'ROLE'], [])
      return [out.text(), aside.text()]
    }
    expect(said(true)).toEqual(['', 'there is nothing to list\n'])
    expect(said(false)).toEqual(['', ''])
    expect(said(true, true)).toEqual(['{}\n', ''])
  })
})

test('one thing is singular', async () => {
  expect([0, 1, 2].map((count) => countText(count, 'entry', 'entries'))).toEqual(['0 entries', '1 entry', '2 entries'])
  using place = workplace()
  const file = join(place.folder, 'audit.jsonl')
  const { text } = formatLine({ seq: 1, prev: firstHash }, '2026-03-02T09:00:00.000Z', { event: 'x', fields: {} })
  writeFileSync(file, `${text}\n`)
  const out = terminal()
  await verifyAudit({ data: place.folder }, out, [file])
  expect(out.text()).toStartWith('1 entry, none changed')
})

test('a sentence stays one line, whatever others wrote into it, and the result of a tool keeps its own', async () => {
  const content = [{ type: 'text', text: 'one\ntwo' }]
  using server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => Response.json({ content }) })
  const out = terminal()
  const context = contextOf({ url: `http://127.0.0.1:${server.port}`, namespace: 'n' }, out, 'a-key')
  context.say({}, 'notes cannot be used: no\nnotes is connected\u200b\u{e0041}')
  await callTool(context, 'c.t', [])
  expect(out.text()).toBe('notes cannot be used: no\\u000anotes is connected\\u{200b}\\u{e0041}\none\ntwo\n')
})

test('images, audio and other bytes of a tool are named, and printed with --json alone', async () => {
  const content = [
    { type: 'text', text: 'Here it is:' },
    { type: 'image', data: Buffer.alloc(4_000).toString('base64'), mimeType: 'image/png' },
    { type: 'audio', data: Buffer.alloc(12).toString('base64'), mimeType: 'audio/wav' },
    { type: 'resource', resource: { uri: 'file:///a', blob: 'AAAA', mimeType: 'application/pdf' } },
    { type: 'resource_link', uri: 'file:///b', name: 'b' },
  ]
  using server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => Response.json({ content }) })
  const printed = async (json: boolean) => {
    const out = terminal()
    const flags = { url: `http://127.0.0.1:${server.port}`, namespace: 'n', json }
    expect(await callTool(contextOf(flags, out, 'a-key'), 'c.t', [])).toBe(0)
    return out.text()
  }
  expect(await printed(false)).toBe(
    'Here it is:\n[image/png, 4 kB]\n[audio/wav, 12 bytes]\n[application/pdf, 3 bytes]\n' +
      '{"type":"resource_link","uri":"file:///b","name":"b"}\n',
  )
  expect(JSON.parse(await printed(true))).toEqual({ content })
})
