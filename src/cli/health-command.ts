/** `postern health`: asks whether a platform answers, for scripts and for health checks inside an image. */

import { CommandError } from '../errors.ts'
import { cleanUrl, notPostern, unreachableText } from './client/api-client.ts'
import { urlOf } from './config.ts'
import type { Terminal } from './terminal.ts'

/** Time for the answer. Past it: the platform does not answer. */
const healthMs = 5000

/** The addresses that stand for all of a machine, by the one that reaches them from the machine itself. */
const loopbackOf: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1', '[::]': '::1' }

interface Address {
  readonly host: string
  readonly port: string
}

/** Without a URL: that of the platform on this machine. Throws CommandError 2 for no URL. */
export function platformUrl(given: string | undefined, { host, port }: Address): string {
  return cleanUrl(given ?? urlOf(loopbackOf[host] ?? host, Number(port)))
}

/** Waits for `healthMs` at most, for the body too. */
export const ask = (url: string, path: string, credential?: string) => {
  const headers = credential === undefined ? {} : { authorization: `Bearer ${credential}` }
  return fetch(`${url}${path}`, { headers, redirect: 'manual', signal: AbortSignal.timeout(healthMs) })
}

/** Resolves if `GET /health` answers 200. Throws CommandError otherwise. */
export async function askHealth(given: string | undefined, address: Address, { stdout }: Terminal): Promise<void> {
  const url = platformUrl(given, address)
  const answer = await ask(url, '/health').catch((error: NodeJS.ErrnoException) => error.code ?? error.name)
  if (typeof answer === 'string') throw new CommandError(unreachableText(url, answer))
  if (answer.status !== 200)
    throw new CommandError(`${url} answers with status ${answer.status}: check the URL, and the log of postern`)
  const body = (await answer.json().catch(() => undefined)) as { status?: unknown } | null | undefined
  if (body?.status !== 'ok') throw new CommandError(notPostern(url))
  stdout(`${url} answers\n`)
}
