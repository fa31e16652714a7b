/** The record of calls and the audit log of a running platform. */

import { Type } from '@sinclair/typebox'
import { CommandError } from '../../errors.ts'
import { AuditPage, AuditVerification } from '../../model/recorded-call.ts'
import { oneLine } from '../../ops/escape-control.ts'
import { nullable } from '../../schema/shapes.ts'
import { truncatedText } from '../audit.ts'
import { type CallsFlags, callHeading, callRow, jsonLines, sinceOf } from '../calls.ts'
import { countText } from '../count-text.ts'
import { queryOf } from './api-client.ts'
import type { CommandContext } from './context.ts'

/** Ours: calls that one command fetches. Past it: older ones are left out, and the command says so. */
const callsMax = 1000

/** Another version may have written a line of the record. */
const CallPage = Type.Object({ calls: Type.Array(Type.Object({})), nextCursor: nullable(Type.String()) })

/** Prints the calls that match, oldest first, as `postern calls` does of a file. */
export async function showCalls(context: CommandContext<CallsFlags>): Promise<void> {
  const { flags, request, show, stdout, stderr } = context
  const { follow, args, since, namespace, connection, tool, user, token, outcome } = flags
  if (follow !== undefined || args !== undefined)
    throw new CommandError('--follow and --args read calls.jsonl: use them on the server’s machine, with --data', 2)
  const wanted = { namespace, connection, tool, user, token, outcome, since: sinceOf(since, new Date())?.toISOString() }
  const calls: object[] = []
  let cursor: string | null | undefined
  while (cursor !== null && calls.length < callsMax) {
    const page = await request('GET', `/calls${queryOf({ ...wanted, cursor })}`, { reads: CallPage })
    calls.push(...page.calls)
    cursor = page.nextCursor
  }
  calls.reverse()
  if (flags.json === true) stdout(jsonLines(calls))
  else show(calls, callHeading, calls.map(callRow))
  if (cursor !== null)
    stderr(
      `these are the newest ${calls.length}: --namespace, --connection, --tool, --user, --token and --outcome find older ones\n`,
    )
}

/** Prints entries of the audit log as JSON lines, oldest first. */
export async function listAudit(
  { flags, request, stdout }: CommandContext<{ since?: string; event?: string }>,
  now: Date,
) {
  const { since, event } = flags
  const query = queryOf({ since: sinceOf(since, now)?.toISOString(), event })
  const { entries } = await request('GET', `/audit${query}`, { reads: AuditPage })
  stdout(jsonLines(entries.reverse()))
}

/** Throws CommandError with the problems. */
export async function verifyAudit({ flags, request, say, stderr }: CommandContext<{ hash?: string }>): Promise<void> {
  const found = await request('GET', `/audit/verification${queryOf({ hash: flags.hash })}`, {
    reads: AuditVerification,
  })
  for (const place of found.truncatedLines) stderr(truncatedText(oneLine(place)))
  if (!found.ok) throw new CommandError(found.problems.map(oneLine).join('\n'))
  const lines = found.logs.map(({ replica, entries, hash }) => {
    const counted = `${replica === null ? '' : `${replica}: `}${countText(entries, 'entry', 'entries')}`
    return `${counted} in audit.jsonl, none changed, none missing between them. The last has the hash ${hash}`
  })
  say(found, lines.length === 0 ? 'no entries yet' : lines.join('; '))
}
