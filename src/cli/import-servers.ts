/** `postern server import`: registers servers from `server.json` documents or a dump of an MCP registry. */

import { CommandError } from '../errors.ts'
import { fixtureDepthMax } from '../limits.ts'
import { type NamedFolder, openNamedDataFolder } from '../maintenance/data-folder.ts'
import { importServers } from '../maintenance/import-servers.ts'
import { isSlug, UserId } from '../model/names.ts'
import { escapeControlCharacters } from '../ops/escape-control.ts'
import { problemText, validatorOf } from '../schema/check.ts'
import { readJsonBytes } from '../schema/json.ts'
import { auditCommand } from './audit.ts'
import { readInput } from './json-input.ts'
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
  if (namespace !== undefined && !isSlug(namespace)) throw new CommandError('--namespace: is not a namespace', 2)
  const [wrongOwner] = ownerShape.problems(owner, 1)
  if (wrongOwner !== undefined) throw new CommandError(`--owner: ${problemText(wrongOwner)}`, 2)
  const documents = readDocuments(file)
  const { store } = await openNamedDataFolder(flags, terminal.stderr)
  try {
    const options = { userId: owner, now: new Date(), ...(namespace !== undefined && { namespace }) }
    const { servers, namespaces, leftOut } = await importServers(store, documents, options)
    await auditCommand(flags.data, 'servers.imported', { servers, namespaces })
    terminal.stdout(`imported ${counted(servers, 'server')}, and made ${counted(namespaces, 'namespace')}\n`)
    for (const line of leftOut.slice(0, shownAtMost)) terminal.stderr(`left out: ${escapeControlCharacters(line)}\n`)
    if (leftOut.length > shownAtMost) terminal.stderr(`and ${leftOut.length - shownAtMost} more\n`)
    if (servers === 0) throw new CommandError('no server was imported')
  } finally {
    await store.close()
  }
}

const shownAtMost = 20

/** The JSON documents of a file: one, or one a line. */
function readDocuments(file: string): unknown[] {
  const bytes = readInput(file)
  const whole = readJsonBytes(bytes, { depthMax: fixtureDepthMax })
  if (!('problem' in whole)) return [whole.value]
  const documents: unknown[] = []
  for (const [index, line] of bytes.toString().split('\n').entries()) {
    if (line.trim() === '') continue
    const read = readJsonBytes(Buffer.from(line), { depthMax: fixtureDepthMax })
    if ('problem' in read) {
      // A first line that is no document: the file is one document, over several lines.
      if (documents.length === 0) throw new CommandError(`${file}: ${problemText(whole.problem)}`)
      throw new CommandError(`${file}:${index + 1}: ${problemText(read.problem)}`)
    }
    documents.push(read.value)
  }
  return documents
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`
}
