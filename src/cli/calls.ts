/** `postern calls`: prints recorded calls of tools, those that its flags choose. */

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { openSecrets } from '../auth/secrets.ts'
import { CommandError } from '../errors.ts'
import { rpcDepthMax } from '../limits.ts'
import { parseLine } from '../ops/audit-chain.ts'
import { matchesCall, type RecordedCall } from '../ops/call-filter.ts'
import { argumentsHash } from '../ops/call-log.ts'
import { followLines } from './growing-file.ts'
import { readJson } from './json-input.ts'
import { table } from './table.ts'
import type { Terminal } from './terminal.ts'

type Filter = 'since' | 'namespace' | 'connection' | 'tool' | 'user' | 'token' | 'outcome' | 'args'

/** `args`: arguments, for calls with the same ones: JSON, or a file with it. */
export interface CallsFlags extends Readonly<Partial<Record<Filter, string>>> {
  readonly data: string
  readonly follow?: boolean
  readonly json?: boolean
}

/** How soon a new call is shown. */
const followPauseMs = 300

/** Prints the calls that match, oldest first; with `follow`, also those to come, until stopped. Throws CommandError. */
export async function showCalls(flags: CallsFlags, terminal: Terminal): Promise<void> {
  const path = join(flags.data, 'calls.jsonl')
  if (!existsSync(path)) {
    if (flags.follow !== true || !existsSync(flags.data))
      throw new CommandError(`${path}: no such file: no calls were recorded in this folder; name another with --data`)
    terminal.stderr(`no calls were recorded in ${flags.data} yet: waiting\n`)
  }
  const matches = filterOf(flags, new Date())
  const print = flags.json === true ? jsonLines : tablePrinter()
  const pause = async () => {
    await setTimeout(followPauseMs)
    return !terminal.isStdoutClosed()
  }
  for await (const lines of followLines(path, flags.follow === true ? pause : undefined))
    terminal.stdout(print(lines.flatMap(callIn).filter(matches)))
}

/** The call in a line; none in a line of another kind, or one that was not written so (`audit verify` tells of it). */
function callIn(line: string): RecordedCall[] {
  if (parseLine(line) === undefined) return []
  const call = JSON.parse(line) as RecordedCall
  return call.event === 'call' ? [call] : []
}

/** Throws CommandError for a bad flag. */
function filterOf({ data, since, args, ...names }: CallsFlags, now: Date): (call: RecordedCall) => boolean {
  return matchesCall({
    ...names,
    since: sinceOf(since, now)?.getTime(),
    ...(args !== undefined && { args: hashIn(data, args) }),
  })
}

/** `duration`: like 1h, before now. Throws CommandError. */
export function sinceOf(duration: string | undefined, now: Date): Date | undefined {
  if (duration === undefined) return undefined
  const [, count, unit] = /^(\d{1,6})([smhd])$/.exec(duration) ?? []
  if (count === undefined || unit === undefined)
    throw new CommandError('--since: must be a duration like 90s, 30m, 1h or 7d', 2)
  const unitMs = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }[unit as 's' | 'm' | 'h' | 'd']
  return new Date(now.getTime() - Number(count) * unitMs)
}

function hashIn(data: string, args: string): string {
  const secret = join(data, 'instance-secret')
  if (!existsSync(secret))
    throw new CommandError(
      `${secret}: no such file: --args needs the instance secret; name the folder that has it with --data`,
    )
  const { callKey } = openSecrets(secret)
  return argumentsHash(callKey, readJson(args, '--args', rpcDepthMax))
}

export const jsonLines = (records: readonly object[]) => records.map((one) => `${JSON.stringify(one)}\n`).join('')

export const callHeading = ['TIME', 'USER', 'CONNECTION', 'TOOL', 'OUTCOME', 'TIME TAKEN']

export function callRow(call: RecordedCall): string[] {
  const { time = '', userId = '', namespace, connectionId, tool = '', outcome = '', code, constraint, ms } = call
  return [
    time,
    userId,
    `${namespace}/${connectionId}`,
    tool,
    code === undefined ? outcome : `${outcome} (${constraint ?? code})`,
    ms === undefined ? '' : `${ms} ms`,
  ]
}

/** Makes a function that gives calls as a table, whose heading is with the first of them. */
function tablePrinter(): (calls: readonly RecordedCall[]) => string {
  let heading = [callHeading]
  return (calls) => {
    if (calls.length === 0) return ''
    const text = table([...heading, ...calls.map(callRow)])
    heading = []
    return text
  }
}
