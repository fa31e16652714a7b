/** `postern audit verify`, and the lines that commands write to the audit log. */

import { createReadStream, existsSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { type AuditFields, openAuditLog } from '../audit/audit-log.ts'
import { chainVerifier } from '../audit/chain.ts'
import { CommandError } from '../errors.ts'
import type { Terminal } from './terminal.ts'

/** After the act itself, before the command says that it is done. */
export async function recordAct(data: string, event: string, fields: AuditFields): Promise<void> {
  const audit = openAuditLog(data, { now: () => new Date(), onFailure: () => {} })
  try {
    await audit.record(event, { ...fields, by: 'command line' })
  } finally {
    audit.close()
  }
}

/** More than anybody reads at once. */
const problemsShownMax = 100

export async function verifyAudit(
  file: string | undefined,
  { data, hash }: { readonly data: string; readonly hash?: string },
  { stdout, stderr }: Terminal,
): Promise<void> {
  const path = file ?? join(data, 'audit.jsonl')
  if (!existsSync(path)) throw new CommandError(`there is no audit log at ${path}`)
  const chain = chainVerifier()
  let hasHash = false
  for await (const line of createInterface({ input: createReadStream(path), crlfDelay: Number.POSITIVE_INFINITY })) {
    chain.take(line)
    hasHash ||= line.endsWith(`,"hash":"${hash}"}`)
  }
  const { entries, lastHash, problems, torn } = chain.report()
  if (hash !== undefined && !hasHash) {
    throw new CommandError(`${path} has no entry with the hash ${hash}: it was cut off, or written anew`)
  }
  for (const line of torn) stderr(`${path}:${line}: was cut short by a crash; nothing is missing after it\n`)
  if (problems.length > 0) {
    if (entries === 0) throw new CommandError(`${path} is no audit log: none of its lines is an entry`)
    const lines = problems.slice(0, problemsShownMax).map((problem) => `${path}:${problem}`)
    if (problems.length > lines.length) lines.push(`and ${problems.length - lines.length} lines more`)
    throw new CommandError(lines.join('\n'))
  }
  stdout(`${entries} entries, none changed, none missing between them. The last has the hash\n${lastHash}\n`)
  stdout('Keep it elsewhere: with --hash, a log that was cut off before it can be told.\n')
}
