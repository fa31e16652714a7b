/** `postern audit verify`, and the audit entries of other commands. */

import { createReadStream, existsSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { CommandError } from '../errors.ts'
import { problemsShownMax } from '../limits.ts'
import { chainVerifier } from '../ops/audit-chain.ts'
import { type AuditFields, openAuditLog } from '../ops/audit-log.ts'
import { countText } from './count-text.ts'
import type { Terminal } from './terminal.ts'

/**
 * Writes an audit entry. Called after the act, and before the command reports success. Throws StoreError if the entry
 * cannot be written.
 */
export async function auditCommand(data: string, event: string, fields: AuditFields): Promise<void> {
  const audit = openAuditLog(data, { now: () => new Date(), onFailure: () => {} })
  try {
    await audit.record(event, { ...fields, by: 'command line' })
  } finally {
    audit.close()
  }
}

/**
 * Checks the chain of one log, given as files from the oldest to the newest; `-` is stdin. `hash`: the hash of an entry
 * that must be in it. Throws CommandError with the problems.
 */
export async function verifyAudit(
  files: readonly string[],
  { data, hash }: { readonly data: string; readonly hash?: string },
  { stdout, stderr }: Terminal,
): Promise<void> {
  const paths = files.length > 0 ? files : [join(data, 'audit.jsonl')]
  const chain = chainVerifier()
  let hasHash = false
  for (const path of paths) {
    if (path !== '-' && !existsSync(path)) throw new CommandError(`there is no audit log at ${path}`)
    const input = path === '-' ? process.stdin : createReadStream(path)
    let number = 0
    for await (const line of createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })) {
      number += 1
      chain.push(line, `${path}:${number}`)
      // Comparing the end of the line is enough: the chain check reports a line with a forged hash.
      hasHash ||= line.endsWith(`,"hash":"${hash}"}`)
    }
  }
  const { entries, follows, lastHash, problems, truncatedLines } = chain.report()
  const named = paths.join(', ')
  if (hash !== undefined && !hasHash) {
    throw new CommandError(`${named} has no entry with the hash ${hash}: the log was truncated or rewritten`)
  }
  for (const place of truncatedLines) stderr(`${place}: was truncated by a crash; nothing after it is missing\n`)
  if (problems.length > 0) {
    // Not a single valid line: the wrong file, and not a damaged log.
    if (entries === 0) throw new CommandError(`${named} is not an audit log: no line is a valid entry`)
    const lines = problems.slice(0, problemsShownMax)
    if (problems.length > lines.length) lines.push(`and ${problems.length - lines.length} more`)
    throw new CommandError(lines.join('\n'))
  }
  if (entries === 0) {
    stdout(`${named}: no entries yet\n`)
    return
  }
  if (follows.seq > 0) {
    stderr(
      `${named} begins with entry ${follows.seq + 1}. The entries before it are not checked: ` +
        `name their files too, the oldest first; the last of them has the hash\n${follows.hash}\n`,
    )
  }
  stdout(
    `${countText(entries, 'entry', 'entries')}, none changed, none missing between them. The last has the hash\n${lastHash}\n`,
  )
  stdout('Keep it elsewhere: given to --hash later, it shows whether the log was cut off before this entry.\n')
}
