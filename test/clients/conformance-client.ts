/**
 * What the conformance suite drives as a client: makes a connection to the server that the suite names, signs in to it
 * as a person would, and calls its tools.
 *
 *   POSTERN_URL=… POSTERN_KEY=… bun test/clients/conformance-client.ts SERVER-URL
 */

import { randomUUID } from 'node:crypto'
import { fieldsOf } from '../support/pages.ts'
import { browser } from './browser.ts'

// A suite may have scenarios of other things than sign-in.
if (process.env['MCP_CONFORMANCE_SCENARIO']?.startsWith('auth/') === false) process.exit(0)
const [mcpUrl = ''] = process.argv.slice(-1)
const { POSTERN_URL: url = '', POSTERN_KEY: key = '', MCP_CONFORMANCE_CONTEXT: context = '{}' } = process.env
const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
const connection = `${url}/connect/ada/c-${randomUUID()}`
const { client_id: clientId, client_secret: clientSecret } = JSON.parse(context) as Record<string, string | undefined>
const oauth = clientId === undefined ? {} : { oauth: { clientId, ...(clientSecret !== undefined && { clientSecret }) } }

async function ask(method: string, path: string, body: object) {
  const response = await fetch(`${connection}${path}`, { method, headers, body: JSON.stringify(body) })
  // The answer, or the event that carries it.
  const text = await response.text()
  const json = /^data: (.*)$/m.exec(text)?.[1] ?? text
  return JSON.parse(json) as {
    status?: { state: string; setupUrl?: string }
    error?: { data?: { authorizationUrl?: string } }
  }
}

async function signIn(setupUrl: string): Promise<void> {
  const visit = browser()
  let opened = await visit(setupUrl)
  // Without a ticket: a session first.
  if (opened.page.includes('name="key"')) {
    opened = await visit(`${url}/signin`, { ...fieldsOf(opened.page), key })
  }
  const { page } = await visit(setupUrl, { form: fieldsOf(opened.page)['form'] ?? '' })
  const href = /id="continue" href="([^"]*)"/.exec(page)?.[1]?.replaceAll('&amp;', '&')
  if (href === undefined) throw new Error(page.replaceAll(/<style>[^]*<\/style>|<[^>]+>/g, ''))
  const back = await visit(href)
  if (new URL(back.url).pathname !== '/oauth/done')
    throw new Error(back.page.replaceAll(/<style>[^]*<\/style>|<[^>]+>/g, ''))
}

const made = await ask('PUT', '', { mcpUrl, ...oauth })
if (made.status?.setupUrl !== undefined) await signIn(made.status.setupUrl)
const call = (id: number, method: string, params: object = {}) =>
  ask('POST', '/mcp', { jsonrpc: '2.0', id, method, params })
await call(1, 'tools/list')
for (let tries = 0; tries < 3; tries += 1) {
  const answer = await call(2, 'tools/call', { name: 'test-tool', arguments: {} })
  const again = answer.error?.data?.authorizationUrl
  if (again === undefined) break
  await signIn(again)
}
