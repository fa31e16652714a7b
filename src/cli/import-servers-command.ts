/** `postern server import`: registers servers from `server.json` documents or a dump of an MCP registry. */

import { CommandError } from '../errors.ts'
import { fixtureDepthMax } from '../limits.ts'
import { type NamedFolder, openNamedDataFolder } from '../maintenance/data-folder.ts'
import { importServers } from '../maintenance/import-servers.ts'
import { isSlug, UserId } from '../model/names.ts'
import { oneLine } from '../ops/escape-control.ts'
import { problemText, validatorOf } from '../schema/check.ts'
import { readJsonBytes } from '../schema/json.ts'
import { auditCommand } from './audit.ts'
import { countText } from './count-text.ts'
import { readInput, requireShape } from './json-input.ts'
import type { Terminal } from './terminal.ts'

/** `namespace`: of all servers. `owner`: who owns namespaces that are made. */
export interface ImportServersFlags extends NamedFolder {
  readonly namespace?: string
  readonly owner: string
}

const ownerShape = validatorOf(UserId)

/** `file`: JSON, or one JSON document a line. Throws CommandError. */
export async function importServersCommand(file: string, flags: ImportServersFlags, terminal: Terminal): Promise<void> {
  const { namespace, owner } = flags
  if (namespace !== undefined && !isSlug(namespace))
    throw new CommandError(`--namespace ${namespace}: must be 1 to 64 letters, digits, ".", "_" or "-"`, 2)
  requireShape('--owner', ownerShape, owner)
  const documents = readDocuments(file)
  await using folder = await openNamedDataFolder(flags, terminal.stderr)
  const { store } = folder
  const options = { userId: owner, now: new Date(), ...(namespace !== undefined && { namespace }) }
  const { servers, namespaces, leftOut } = await importServers(store, documents, options)
  const [serverCount, namespaceCount] = [servers.length, namespaces.length]
  await auditCommand(flags.data, 'servers.imported', { servers: serverCount, namespaces: namespaceCount })
  terminal.stdout(`imported ${countText(serverCount, 'server')}${someOf(servers)}\n`)
  if (namespaceCount > 0)
    terminal.stdout(`made ${countText(namespaceCount, 'namespace')} of ${owner}${someOf(namespaces)}\n`)
  for (const line of leftOut.slice(0, shownAtMost)) terminal.stderr(`left out: ${oneLine(line)}\n`)
  if (leftOut.length > shownAtMost) terminal.stderr(`and ${leftOut.length - shownAtMost} more\n`)
  if (serverCount === 0)
    throw new CommandError('no server was imported; `postern server add` takes a file with the details of one')
}

const shownAtMost = 20
const namesShownAtMost = 5

const bounds = { depthMax: fixtureDepthMax, numbers: 'exact' } as const

/** The JSON documents of a file: one, or one a line. */
function readDocuments(file: string): unknown[] {
  const bytes = readInput(file)
  const whole = readJsonBytes(bytes, bounds)
  if (!('problem' in whole)) return [whole.value]
  const documents: unknown[] = []
  for (const [index, line] of bytes.toString().split('\n').entries()) {
    if (line.trim() === '') continue
    const read = readJsonBytes(Buffer.from(line), bounds)
    if ('problem' in read) {
      // The first line is not a document by itself: the file is one document of several lines.
      if (documents.length === 0) throw new CommandError(`${file}: ${problemText(whole.problem)}`)
      throw new CommandError(`${file}:${index + 1}: ${problemText(read.problem)}`)
    }
    documents.push(read.value)
  }
  return documents
}

/** A few of the names, after a colon. */
function someOf(names: readonly string[]): string {
  const more = names.length > namesShownAtMost ? ', …' : ''
  return names.length === 0 ? '' : `: ${names.slice(0, namesShownAtMost).join(', ')}${more}`
}
