/** Reads the case files beside this one and holds an answer to a case. Their fields are said in README.md. */

import { expect } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type SampleUser, sampleKeys } from '../support/sample.ts'

interface TokenOf {
  readonly user?: SampleUser
  readonly policy?: unknown
  readonly organizationId?: string
}
type As = SampleUser | TokenOf | readonly TokenOf[] | { authorization: string } | { headers: readonly string[] }

export interface Case {
  readonly file: string
  readonly clause: string
  readonly name?: string
  readonly as?: As
  readonly host?: string
  readonly origin?: string
  readonly request: string
  readonly body?: unknown
  readonly raw?: string
  readonly hex?: string
  readonly type?: string
  readonly status: number
  readonly error?: string
  readonly message?: string
  readonly is?: unknown
  readonly has?: Record<string, unknown>
  readonly first?: Record<string, unknown>
  readonly without?: string
  readonly keys?: readonly string[]
  readonly ids?: readonly string[]
  readonly headers?: Record<string, string>
}

export type Send = (path: string, init: RequestInit) => Promise<Response>

const known = new Set(
  'clause name as host origin request body raw hex type status error message is has first without keys ids headers'.split(
    ' ',
  ),
)

export function readCases(): Case[] {
  const files = readdirSync(import.meta.dir).filter((name) => name.endsWith('.json') && name !== 'clauses.json')
  return files.flatMap((file) => {
    const cases = JSON.parse(readFileSync(join(import.meta.dir, file), 'utf8')) as Case[]
    for (const one of cases) {
      for (const field of Object.keys(one)) if (!known.has(field)) throw new Error(`${file}: unknown field ${field}`)
    }
    return cases.map((one) => ({ ...one, file }))
  })
}

export function titleOf(one: Case): string {
  return [one.clause, one.name, one.request.slice(0, 80)].filter((part) => part !== undefined).join(' · ')
}

export async function runCase(one: Case, send: Send): Promise<void> {
  const [method = '', target = ''] = one.request.split(' ')
  const headers = new Headers()
  for (const authorization of await authorizations(one.as, send)) headers.append('authorization', authorization)
  if (one.host !== undefined) headers.set('host', one.host)
  if (one.origin !== undefined) headers.set('origin', one.origin)
  const body = bodyOf(one)
  if (body !== undefined && one.type !== '') headers.set('content-type', one.type ?? 'application/json')
  const response = await send(repeat(target), { method, headers, ...(body !== undefined && { body }) })
  const text = await response.text()

  expect({ status: response.status, text }).toEqual({ status: one.status, text })
  const answer = JSON.parse(text)
  if (one.error !== undefined) expect(answer.error).toBe(one.error)
  if (one.message !== undefined) expect(answer.message ?? answer.error).toContain(one.message)
  if (one.is !== undefined) expect(answer).toEqual(one.is)
  if (one.has !== undefined) expect(answer).toMatchObject(one.has)
  if (one.first !== undefined) expect(answer.connections[0]).toMatchObject(one.first)
  if (one.without !== undefined) {
    expect(answer.connections).not.toBeEmpty()
    for (const row of answer.connections) expect(row).not.toHaveProperty(one.without)
  }
  if (one.keys !== undefined) expect(Object.keys(answer).sort()).toEqual([...one.keys].sort())
  if (one.ids !== undefined) {
    expect(answer.connections.map((row: { connectionId: string }) => row.connectionId)).toEqual([...one.ids])
  }
  for (const [name, value] of Object.entries(one.headers ?? {})) {
    const actual = response.headers.get(name) ?? ''
    if (value.startsWith('/')) expect(actual).toMatch(new RegExp(value.slice(1, -1)))
    else expect(actual).toBe(value)
  }
}

function bodyOf(one: Case): string | Buffer | undefined {
  if (one.hex !== undefined) return Buffer.from(one.hex, 'hex')
  if (one.raw !== undefined) return repeat(one.raw)
  return one.body === undefined ? undefined : repeat(JSON.stringify(one.body))
}

/** `REPEAT(x,3)` stands for `xxx`, so that long cases stay readable. */
function repeat(text: string): string {
  return text.replace(/REPEAT\((.),(\d+)\)/gu, (_, c: string, count: string) => c.repeat(Number(count)))
}

async function authorizations(as: As | undefined, send: Send): Promise<readonly string[]> {
  if (as === undefined) return []
  if (typeof as === 'string') return [`Bearer ${sampleKeys[as]}`]
  if ('authorization' in as) return [as.authorization]
  if ('headers' in as) return as.headers
  let credential = ''
  for (const { user, ...body } of Array.isArray(as) ? as : [as]) {
    if (user !== undefined) credential = sampleKeys[user as SampleUser]
    credential = await mintToken(send, credential, body)
  }
  return [`Bearer ${credential}`]
}

export async function mintToken(send: Send, credential: string, body: object = {}): Promise<string> {
  const response = await send('/tokens', {
    method: 'POST',
    headers: { authorization: `Bearer ${credential}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  const answer = (await response.json()) as { token: string }
  if (response.status !== 200) throw new Error(`minting answered ${response.status}: ${JSON.stringify(answer)}`)
  return answer.token
}
