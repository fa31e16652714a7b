/** `postern status`: what runs on this machine, or behind a URL, and what is unwell. */

import { existsSync } from 'node:fs'
import type { OpenApiDocument } from '../features/reference/document.ts'
import type { Overview } from '../model/health.ts'
import { readHosts } from './client/hosts.ts'
import { ask, askHealth, platformUrl } from './health-command.ts'
import { storeStatus } from './store-command.ts'
import { table } from './table.ts'
import type { Terminal } from './terminal.ts'

type StatusFlags = Parameters<typeof platformUrl>[1] & Parameters<typeof storeStatus>[0]

/** The part of an overview that needs no table: how many connections are well, and those that are not. */
function factsOf({ connections, attention, calls, store }: Overview): string[][] {
  const { total, complete, ...levels } = connections
  const counted = Object.entries(levels).filter(([, count]) => count > 0)
  const parts = counted.map(([level, count]) => `${count} ${level}`).join(', ')
  const more = complete ? '' : ' or more'
  const unlisted = levels.attention + levels.down - attention.length
  return [
    ...(store.ok ? [] : [['store', `cannot be used: ${store.problem ?? 'ask an operator'}`]]),
    ['connections', `${total}${more}${parts === '' ? '' : `: ${parts}`}`],
    ...attention.map(({ namespace, connectionId, level, summary }) => [
      level,
      `${namespace}/${connectionId}: ${summary}`,
    ]),
    ...(unlisted > 0 ? [['', `${unlisted} more: see \`postern connection list\``]] : []),
    ...(calls === null
      ? []
      : [['calls in the last hour', `${calls.ok} ok, ${calls.failed} failed, ${calls.refused} refused`]]),
  ]
}

/** Resolves with the exit code: 1 if the platform does not answer. Throws CommandError and StoreError of the store. */
export async function status(given: string | undefined, flags: StatusFlags, terminal: Terminal): Promise<number> {
  const url = platformUrl(given, flags)
  const problem = await askHealth(given, flags, { ...terminal, stdout: () => {} }).then(
    () => undefined,
    ({ message }: Error) => message,
  )
  const { current, keys } = readHosts(process.env)
  const key = process.env['POSTERN_TOKEN'] || keys[url]
  const read = <T>(path: string, credential?: string) =>
    ask(url, path, credential)
      .then((response) => (response.ok ? (response.json() as Promise<T>) : undefined))
      .catch(() => undefined)
  const facts = [
    ['address', url],
    ['answers', problem === undefined ? 'yes' : `no: ${problem}`],
  ]
  if (problem !== undefined && given === undefined && current !== undefined && current !== url)
    facts.push(['logged in to', `${current}: see \`postern status ${current}\``])
  let baseUrl: string | undefined
  if (problem === undefined) {
    const document = await read<Partial<OpenApiDocument>>('/openapi.json')
    const signIn = await read('/.well-known/oauth-authorization-server')
    baseUrl = document?.servers?.[0]?.url
    facts.push(['base URL', baseUrl ?? 'unknown'])
    facts.push(['version', document?.info?.version ?? 'unknown'])
    facts.push(['sign-in of clients', signIn === undefined ? 'off' : 'on'])
  }
  const overview = problem === undefined && key !== undefined ? await read<Overview>('/overview', key) : undefined
  if (overview !== undefined) facts.push(...factsOf(overview))
  terminal.stdout(table(facts))
  // Its store, where it is on this machine or named.
  if (given === undefined && (Boolean(flags.store) || existsSync(flags.data)))
    await storeStatus(flags, terminal, baseUrl)
  return problem === undefined ? 0 : 1
}
