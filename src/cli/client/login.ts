/** `postern login`, `logout` and `whoami`: whose key commands use. */

import { readFileSync } from 'node:fs'
import type { Command } from 'commander'
import { CommandError } from '../../errors.ts'
import { isSecureUrl } from '../../http/guard.ts'
import { Me } from '../../model/organization.ts'
import type { Terminal } from '../terminal.ts'
import { type ClientFlags, cleanUrl, notPostern } from './api-client.ts'
import { contextOf, jsonOption, type RemoteCommands } from './context.ts'
import { readHosts, writeHosts } from './hosts.ts'

export function addLoginCommands(postern: Command, { remote }: RemoteCommands, terminal: Terminal): void {
  postern
    .command('login')
    .argument('<url>', 'base URL of postern, like https://mcp.example.com')
    .description('log in to postern with an API key, typed at a prompt or read from stdin')
    .addOption(jsonOption())
    .action((url: string, flags) => login(url, flags, terminal))
  postern
    .command('logout')
    .argument('[url]', 'base URL (default: where you last logged in)')
    .description('forget the API key of a base URL')
    .action((url: string | undefined) => logout(url, terminal))
  remote(postern, 'whoami', 'show who you are logged in as, and what you have access to').run(
    async ({ url, request, show }) => {
      const me = await request('GET', '/me', { reads: Me })
      const rows = [
        ['logged in to', url],
        ['user', me.userId + (me.operator ? ', an operator' : '')],
        ['key', [me.key.id, me.key.name].filter((part) => part !== null).join(' ')],
        ...(me.token === null ? [] : [['token', `${me.token.jti}, until ${me.token.expiresAt}`]]),
        ...me.organizations.map(({ organizationId, role }) => ['organization', `${organizationId} (${role})`]),
        ...me.namespaces.map(({ name, may }) => ['namespace', `${name}: ${may.join(' ')}`]),
        ...(me.more ? [['namespace', '…and more: `postern namespace list`']] : []),
      ]
      show(me, ['FIELD', 'VALUE'], rows)
    },
  )
}

/** Keeps a key that works, from the terminal or stdin. Throws CommandError. */
async function login(given: string, flags: ClientFlags, terminal: Terminal): Promise<void> {
  const url = cleanUrl(given)
  const key = (process.stdin.isTTY ? await readHidden('API key: ', terminal) : readFileSync(0, 'utf8')).trim()
  if (key === '') throw new CommandError('no key was given: type it, or send it to stdin')
  if (!isSecureUrl(url)) terminal.stderr(`warning: ${url} is plain HTTP, so everybody on the way can read the key\n`)
  const { request, say } = contextOf({ ...flags, url }, terminal, key)
  const me = await request('GET', '/me', { missing: notPostern(url), reads: Me })
  const { keys } = readHosts(process.env)
  writeHosts(process.env, { current: url, keys: { ...keys, [url]: key } })
  const isOther = keys[url] !== undefined && keys[url] !== key
  say(me, `logged in to ${url} as ${me.userId}${isOther ? ', in place of another key' : ''}`)
  if (process.env['POSTERN_TOKEN']) terminal.stderr('POSTERN_TOKEN is set: commands use it in place of this login\n')
}

/** Forgets the key of a platform; of the current one, if none is named. */
function logout(given: string | undefined, { stdout }: Terminal): void {
  const { current, keys } = readHosts(process.env)
  const url = given === undefined ? current : cleanUrl(given)
  const others = Object.keys(keys).filter((one) => one !== url)
  const elsewhere = others.length > 0 ? `; you are logged in to ${others.join(', ')}: name it` : ''
  if (url === undefined || keys[url] === undefined)
    throw new CommandError(`${url === undefined ? 'you are not logged in' : `not logged in to ${url}`}${elsewhere}`)
  const { [url]: _, ...rest } = keys
  const next = current === url ? undefined : current
  writeHosts(process.env, { keys: rest, ...(next !== undefined && { current: next }) })
  stdout(`logged out of ${url}; the key itself still works, until it is revoked\n`)
  if (next === undefined && others.length > 0) stdout(`still logged in to ${others.join(', ')}\n`)
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
