/** `postern login`, `logout` and `whoami`: whose key commands use. */

import { readFileSync } from 'node:fs'
import { CommandError } from '../../errors.ts'
import type { Me } from '../../model/organization.ts'
import type { Terminal } from '../terminal.ts'
import { type ClientFlags, cleanUrl, openClient } from './api-client.ts'
import { type Environment, readHosts, writeHosts } from './hosts.ts'
import { printSentence, printTable } from './output.ts'

/** Keeps a key that works, from the terminal or stdin. Throws CommandError. */
export async function login(given: string, flags: ClientFlags, environment: Environment, terminal: Terminal) {
  const url = cleanUrl(given)
  const key = (process.stdin.isTTY ? await readHidden('API key: ', terminal) : readFileSync(0, 'utf8')).trim()
  if (key === '') throw new CommandError('no key was given: type it, or send it to stdin')
  const client = openClient({ ...flags, url }, environment, key)
  const me = await client.request<Me>('GET', '/me')
  const { keys } = readHosts(environment)
  writeHosts(environment, { current: url, keys: { ...keys, [url]: key } })
  const isOther = keys[url] !== undefined && keys[url] !== key
  printSentence(me, flags, `logged in to ${url} as ${me.userId}${isOther ? ', in place of another key' : ''}`, terminal)
}

/** Forgets the key of a platform; of the current one, if none is named. */
export function logout(given: string | undefined, environment: Environment, { stdout }: Terminal): void {
  const { current, keys } = readHosts(environment)
  const url = given === undefined ? current : cleanUrl(given)
  if (url === undefined || keys[url] === undefined) throw new CommandError('not logged in')
  const { [url]: _, ...rest } = keys
  const next = current === url ? undefined : current
  writeHosts(environment, { keys: rest, ...(next !== undefined && { current: next }) })
  const others = Object.keys(rest)
  stdout(`logged out of ${url}; the key itself still works, until it is revoked\n`)
  if (next === undefined && others.length > 0) stdout(`still logged in to ${others.join(', ')}: name one with --url\n`)
}

export async function whoAmI(flags: ClientFlags, environment: Environment, terminal: Terminal): Promise<void> {
  const client = openClient(flags, environment)
  const me = await client.request<Me>('GET', '/me')
  const rows = [
    ['platform', client.url],
    ['user', me.userId + (me.operator ? ', an operator' : '')],
    ['key', [me.key.id, me.key.name].filter((part) => part !== null).join(' ')],
    ...(me.token === null ? [] : [['token', `${me.token.jti}, until ${me.token.expiresAt}`]]),
    ...me.organizations.map(({ organizationId, role }) => ['organization', `${organizationId} (${role})`]),
    ...me.namespaces.map(({ name, may }) => ['namespace', `${name}: ${may.join(' ')}`]),
    ...(me.more ? [['namespace', '…and more: `postern namespace list`']] : []),
  ]
  printTable(me, flags, { heading: ['FIELD', 'VALUE'], rows: rows }, terminal)
}

/** A line from the terminal that is not shown. */
async function readHidden(prompt: string, { stderr }: Terminal): Promise<string> {
  stderr(prompt)
  const { stdin } = process
  stdin.setRawMode(true)
  let text = ''
  try {
    for await (const chunk of stdin) {
      for (const character of String(chunk)) {
        if (character === '\r' || character === '\n') return text
        if (character === '\u0003' || character === '\u0004') throw new CommandError('cancelled: no key was saved')
        text = character === '\u007f' ? text.slice(0, -1) : text + character
      }
    }
    return text
  } finally {
    stdin.setRawMode(false)
    stdin.pause()
    stderr('\n')
  }
}
