/** `postern server import`: registers servers from `server.json` documents or a dump of an MCP registry. */

import type { Static } from '@sinclair/typebox'
import { CommandError } from '../errors.ts'
import { importServers, serversIn } from '../features/servers/import-servers.ts'
import { fixtureDepthMax, importedServersMax } from '../limits.ts'
import { type NamedFolder, openNamedDataFolder } from '../maintenance/data-folder.ts'
import { isSlug, UserId } from '../model/names.ts'
import { ServersImported } from '../model/server-json.ts'
import { oneLine } from '../ops/escape-control.ts'
import { problemText, validatorOf } from '../schema/check.ts'
import { readJsonBytes } from '../schema/json.ts'
import { piecesOf } from '../storage/pieces.ts'
import { auditCommand } from './audit.ts'
import type { CommandContext } from './client/context.ts'
import { countText } from './count-text.ts'
import { readInput, requireShape } from './json-input.ts'
import { withInputFile } from './streamed-files.ts'
import type { Terminal } from './terminal.ts'

/** `namespace`: of all servers. `owner`: who owns namespaces that are made. */
export interface ImportServersFlags {
  readonly namespace?: string
  readonly owner?: string
}

/** Ours: bytes of servers that a command imports with one request; the last server of a request may exceed this number, because postern accepts a megabyte. Past it: the command sends several requests. */
const batchBytes = 900_000

const ownerShape = validatorOf(UserId)

type Imported = Static<typeof ServersImported>

/** On the server's machine. `file`: JSON, or one JSON document a line. Throws CommandError. */
export async function importServersCommand(
  flags: NamedFolder & ImportServersFlags,
  terminal: Terminal,
  file: string,
): Promise<void> {
  requireFlags(flags)
  const { namespace, owner } = flags
  const userId = 'operator'
  const documents = await withInputFile(file, 'servers', readDocuments)
  await using folder = await openNamedDataFolder(flags, terminal.stderr)
  const { store } = folder
  const imported = await importServers(store, documents, { namespace, userId, owner, now: new Date() })
  const { servers, namespaces } = imported
  await auditCommand(flags.data, 'servers.imported', { servers: servers.length, namespaces: namespaces.length })
  report(imported, owner ?? userId, terminal)
}

/** With a platform. Large files are sent in parts, each of which is taken whole. Throws CommandError. */
export async function importOverHttp(context: CommandContext<ImportServersFlags>, file: string): Promise<void> {
  const { flags, request, stdout, stderr } = context
  requireFlags(flags)
  const { namespace, owner } = flags
  const imported: Imported = { servers: [], namespaces: [], leftOut: [] }
  const documents = await withInputFile(file, 'servers', readDocuments)
  const bytesOf = (server: unknown) => Buffer.byteLength(JSON.stringify(server))
  for (const servers of piecesOf(serversIn(documents), { most: importedServersMax, bytes: batchBytes, bytesOf })) {
    const body = { servers, namespace, owner }
    const part = await request('POST', '/servers/.import', { body, reads: ServersImported })
    for (const name of ['servers', 'namespaces', 'leftOut'] as const) imported[name].push(...part[name])
  }
  report(imported, owner ?? 'you', { stdout, stderr })
}

function requireFlags({ namespace, owner }: ImportServersFlags): void {
  if (namespace !== undefined && !isSlug(namespace))
    throw new CommandError(`--namespace ${namespace}: must be 1 to 64 letters, digits, ".", "_" or "-"`, 2)
  if (owner !== undefined) requireShape('--owner', ownerShape, owner)
}

function report(imported: Imported, owner: string, { stdout, stderr }: Pick<Terminal, 'stdout' | 'stderr'>): void {
  const { servers, namespaces, leftOut } = imported
  stdout(`imported ${countText(servers.length, 'server')}${someOf(servers)}\n`)
  if (namespaces.length > 0)
    stdout(`created ${countText(namespaces.length, 'namespace')}, owned by ${owner}${someOf(namespaces)}\n`)
  for (const line of leftOut.slice(0, shownAtMost)) stderr(`left out: ${oneLine(line)}\n`)
  if (leftOut.length > shownAtMost) stderr(`and ${leftOut.length - shownAtMost} more\n`)
  if (servers.length === 0)
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
