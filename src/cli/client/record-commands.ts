/** The record of calls and the audit log of a running platform. */

import { setTimeout } from 'node:timers/promises'
import { Type } from '@sinclair/typebox'
import { CommandError } from '../../errors.ts'
import { AuditPage, AuditVerification } from '../../model/recorded-call.ts'
import type { RecordedCall } from '../../ops/call-filter.ts'
import { oneLine } from '../../ops/escape-control.ts'
import { nullable } from '../../schema/shapes.ts'
import { truncatedText } from '../audit.ts'
import { type CallsFlags, callHeading, callRow, jsonLines, sinceOf } from '../calls.ts'
import { countText } from '../count-text.ts'
import { pagesByCursor, queryOf } from './api-client.ts'
import type { CommandContext } from './context.ts'

/** Ours: calls that one command fetches. Past it: older ones are left out, and the command says so. */
const callsMax = 1000

/** Milliseconds between two looks for further calls: a look reads the record of the last calls. */
const followPauseMs = 2000

/** Another version may have written a line of the record. */
const CallPage = Type.Object({ calls: Type.Array(Type.Object({})), nextCursor: nullable(Type.String()) })

/** Prints the calls that match, oldest first, and with `follow` those to come, as `postern calls` does of a file. */
export async function showCalls(context: CommandContext<CallsFlags>): Promise<void> {
  const { flags, show, stdout, stderr, isStdoutClosed } = context
  if (flags.args !== undefined)
    throw new CommandError('--args reads calls.jsonl: use it on the server’s machine, with --data', 2)
  let since = sinceOf(flags.since, new Date())?.toISOString()
  let known: readonly string[] = []
  for (let isFirst = true; ; isFirst = false) {
    const { calls, isAll } = await findCalls(context, since)
    const added = calls.filter((one) => !known.includes(JSON.stringify(one)))
    if (flags.json === true) stdout(jsonLines(added))
    else if (isFirst || added.length > 0) show(added, isFirst ? callHeading : [], added.map(callRow))
    if (!isAll)
      stderr(
        `these are the newest ${calls.length}: --namespace, --connection, --tool, --user, --token and --outcome find older ones\n`,
      )
    // Several calls may have the time of the last one.
    since = calls.at(-1)?.time ?? since
    known = calls.filter(({ time }) => time === since).map((one) => JSON.stringify(one))
    if (flags.follow !== true || isStdoutClosed()) return
    await setTimeout(followPauseMs)
  }
}

/** The newest calls that match, oldest first. `since`: a time as postern writes it, with the calls of that time. */
async function findCalls(context: CommandContext<CallsFlags>, since: string | undefined) {
  const { namespace, connection, tool, user, token, outcome } = context.flags
  const filter = { namespace, connection, tool, user, token, outcome, since }
  const pages = pagesByCursor(context, (cursor) =>
    context.request('GET', `/calls${queryOf({ ...filter, cursor })}`, { reads: CallPage }),
  )
  const calls: RecordedCall[] = []
  let isAll = false
  for await (const page of pages) {
    calls.push(...(page.calls as RecordedCall[]))
    isAll = page.nextCursor === null
    if (calls.length >= callsMax) break
  }
  return { calls: calls.reverse(), isAll }
}

/** Ours: entries of the audit log that `postern audit list` prints. Past it: only the newest of those that match. */
const entriesMax = 100

/** Prints entries of the audit log as JSON lines, oldest first. A page may have few: a request reads so many lines. */
export async function listAudit(context: CommandContext<{ since?: string; event?: string }>, now: Date) {
  const { since, event } = context.flags
  const filter = { since: sinceOf(since, now)?.toISOString(), event }
  const pages = pagesByCursor(context, (cursor) =>
    context.request('GET', `/audit${queryOf({ ...filter, cursor })}`, { reads: AuditPage }),
  )
  const entries: object[] = []
  for await (const page of pages) {
    entries.push(...page.entries)
    if (entries.length >= entriesMax) break
  }
  context.stdout(jsonLines(entries.slice(0, entriesMax).reverse()))
}

/** Throws CommandError with the problems. */
export async function verifyAudit({ flags, request, say, stderr }: CommandContext<{ hash?: string }>): Promise<void> {
  const found = await request('GET', `/audit/verification${queryOf({ hash: flags.hash })}`, {
    reads: AuditVerification,
  })
  for (const place of found.truncatedLines) stderr(truncatedText(oneLine(place)))
  if (!found.ok) throw new CommandError(found.problems.map(oneLine).join('\n'))
  for (const { first } of found.logs)
    if (first > 1)
      stderr(
        `audit.jsonl begins with entry ${first}: check the entries before it on the server’s machine, with their files\n`,
      )
  const lines = found.logs.map(({ replica, entries, hash }) => {
    const counted = `${replica === null ? '' : `${replica}: `}${countText(entries, 'entry', 'entries')}`
    return `${counted} in audit.jsonl, none changed, none missing between them. The last has the hash ${hash}`
  })
  say(found, lines.length === 0 ? 'no entries yet' : lines.join('; '))
}
