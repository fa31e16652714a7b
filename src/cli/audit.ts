/** `postern audit verify`, and the audit entries of other commands. */

import { createReadStream, existsSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { systemClock } from '../clock.ts'
import { CommandError } from '../errors.ts'
import { problemsShownMax } from '../limits.ts'
import type { AuditEvent } from '../model/audit-event.ts'
import { type AuditFields, openAuditLog } from '../ops/audit-log.ts'
import { AuditVerifier, openEndText } from '../ops/audit-verifier.ts'
import { countText } from './count-text.ts'
import type { Terminal } from './terminal.ts'

/** Writes an audit entry, after the act and before the command reports success. Throws StoreError if it cannot. */
export async function auditCommand(data: string, event: AuditEvent, fields: AuditFields): Promise<void> {
  const audit = openAuditLog(data, { clock: systemClock, onFailure: () => {} })
  try {
    await audit.record(event, { ...fields, by: 'command line' })
  } finally {
    audit.close()
  }
}

export const truncatedText = (place: string) => `${place}: a crash cut this line off; no entry is missing after it\n`

/**
 * Checks the chains of logs: of one server, or of replicas, whose lines name them. The files of each are given from the
 * oldest to the newest; `-` is stdin. `hash`: the hash of an entry that must be there. Throws CommandError with the
 * problems, and for a log that ends in the middle of a line and has no entry of that hash.
 */
export async function verifyAudit(
  { data, hash }: { readonly data: string; readonly hash?: string },
  terminal: Terminal,
  files: readonly string[],
): Promise<void> {
  const { stdout, stderr } = terminal
  if (hash !== undefined && !/^[0-9a-f]{64}$/.test(hash))
    throw new CommandError(`--hash: must be 64 hexadecimal digits (0-9, a-f)`, 2)
  const paths = files.length > 0 ? files : [join(data, 'audit.jsonl')]
  const verifier = new AuditVerifier({ hash, isOneLog: files.length === 0 })
  for (const path of paths) await readLog(path, verifier)
  const { logs, problems, truncatedLines } = verifier.report()
  const named = paths.join(', ')
  if (hash !== undefined && !logs.some(({ hasHash }) => hasHash))
    throw new CommandError(
      `${named} has no entry with the hash ${hash}: the log was truncated or rewritten, or an older file has it and must be named too`,
    )
  for (const place of truncatedLines) stderr(truncatedText(place))
  const openEnds = logs.flatMap(({ openEnd, hasHash }) => (openEnd === undefined ? [] : [{ openEnd, hasHash }]))
  const unvouched = openEnds.filter(({ hasHash }) => !hasHash).map(({ openEnd }) => `${openEnd}: ${openEndText}`)
  const bad = [...problems, ...unvouched]
  // Not a single valid line: the wrong file, and not a damaged log.
  if (bad.length > 0 && logs.length === 0)
    throw new CommandError(`${named} is not an audit log: no line is a valid entry`)
  if (bad.length > problemsShownMax)
    bad.splice(problemsShownMax, bad.length, `and ${bad.length - problemsShownMax} more`)
  if (bad.length > 0) throw new CommandError(bad.join('\n'))
  for (const { openEnd } of openEnds) stderr(`${openEnd}: ${openEndText}\n`)
  if (logs.length === 0) stdout(`${named}: no entries yet\n`)
  else tellVerified(logs, named, terminal)
}

async function readLog(path: string, verifier: AuditVerifier): Promise<void> {
  if (path !== '-' && !existsSync(path))
    throw new CommandError(`there is no audit log at ${path}: name the log, or the data folder that has it with --data`)
  const input = path === '-' ? process.stdin : createReadStream(path)
  verifier.nextFile()
  let number = 0
  for await (const line of createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })) {
    number += 1
    verifier.push(line, `${path}:${number}`)
  }
}

type Logs = ReturnType<AuditVerifier['report']>['logs']

function tellVerified(logs: Logs, named: string, { stdout, stderr }: Terminal): void {
  const isOne = logs.length === 1
  for (const { replica = 'lines without a replica', entries, follows, last } of logs) {
    if (follows.seq > 0) {
      stderr(
        `${isOne ? named : replica} begins with entry ${follows.seq + 1}. The entries before it are not checked: ` +
          `name their files too, the oldest first; the last of them has the hash\n${follows.hash}\n`,
      )
    }
    const counted = `${isOne ? '' : `${replica}: `}${countText(entries, 'entry', 'entries')}`
    stdout(`${counted}, none changed, none missing between them. The last has the hash\n${last.hash}\n`)
  }
  stdout(
    isOne
      ? 'Keep this hash elsewhere: given to --hash later, it shows whether the log was cut off before this entry.\n'
      : 'Keep these hashes elsewhere: given to --hash later, each shows whether its log was cut off before this entry.\n',
  )
}
