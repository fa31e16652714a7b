/**
 * Reads fixture files: every file whole, every problem at once, each with its file and place. What comes
 * out is consistent in itself; nothing is written here.
 */

import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { chosenKeyProblem } from '../../auth/api-key.ts'
import { CommandError } from '../../errors.ts'
import { connectionBytesMax, serverBytesMax } from '../../limits.ts'
import { type Connection, urlProblem } from '../../model/connection.ts'
import { namespaceOf } from '../../model/names.ts'
import { RecordedAnswer } from '../../model/recorded-answer.ts'
import { Namespace } from '../../model/registry.ts'
import { type ServerDetail, serverUrlProblem } from '../../model/server.ts'
import { validatorOf } from '../../schema/check.ts'
import { readJsonBytes } from '../../schema/json.ts'
import { type FixtureProblem, recordAt } from './problem.ts'
import { collectReady, type ReadyConnections } from './ready.ts'
import { createReferences } from './references.ts'
import { FixtureApiKey, FixtureConnection, FixtureFile, FixtureOrganization, FixtureServer } from './schema.ts'
import { createSpool, type Spool } from './spool.ts'

/** A file by the name people know it by. Read when needed and not kept: a large set is larger than memory likes. */
export interface SourceFile {
  readonly file: string
  read(): Uint8Array
}

type Of<K extends keyof FixtureFile> = NonNullable<FixtureFile[K]>[number]

export interface Fixtures {
  readonly organizations: readonly Of<'organizations'>[]
  readonly namespaces: readonly Namespace[]
  readonly apiKeys: readonly (Of<'apiKeys'> & { readonly file: string })[]
  readonly servers: readonly ServerDetail[]
  readonly connections: ReadyConnections
  readonly mocks: readonly Of<'mocks'>[]
}

const depthMax = 64
const fileShape = validatorOf(FixtureFile)
const entryShapes = {
  organizations: validatorOf(FixtureOrganization),
  namespaces: validatorOf(Namespace),
  apiKeys: validatorOf(FixtureApiKey),
  servers: validatorOf(FixtureServer),
  connections: validatorOf(FixtureConnection),
  mocks: validatorOf(RecordedAnswer),
}
/** More than anybody reads at once. */
const problemsPerFileMax = 1000

/** The `*.json` files of the folders, by name. Throws CommandError for a folder that cannot be read. */
export function findFixtureFiles(folders: readonly string[]): string[] {
  return folders.flatMap((folder) => {
    try {
      const names = readdirSync(folder).filter((name) => name.endsWith('.json') && !name.endsWith('.schema.json'))
      if (names.length === 0) throw new CommandError(`there is no *.json file in ${folder}`)
      return names.sort().map((name) => join(folder, name))
    } catch (error) {
      if (error instanceof CommandError) throw error
      throw new CommandError(`cannot read the fixtures folder ${JSON.stringify(folder)}: ${whyNot(error)}`, 1, {
        cause: error,
      })
    }
  })
}

function whyNot(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException
  if (code === 'ENOENT') return 'it is not there'
  return code === 'ENOTDIR' ? 'it is a file: name the folder that it is in' : message
}

export function sourceFile(file: string): SourceFile {
  return {
    file,
    read() {
      try {
        return readFileSync(file)
      } catch (error) {
        throw new CommandError(`cannot read ${file}: ${(error as Error).message}`, 1, { cause: error })
      }
    },
  }
}

/** The same for the same files with the same bytes: tells an edit from none, and is no protection. */
export function digestOf(sources: Iterable<SourceFile>): string {
  const files = [...sources].map(({ file, read }) => `${file}\0${Bun.hash.xxHash3(read())}`)
  return createHash('sha256')
    .update(`fixtures 1\0${files.join('\0')}`)
    .digest('hex')
}

export type ReadProgress = (connections: number) => void

/**
 * Reads and checks all files as one set. With any problem, the fixtures are not to be used. The connections wait in
 * the spool, which must be there as long as they are used.
 */
export function readFixtures(
  sources: Iterable<SourceFile>,
  onProgress: ReadProgress = () => {},
  spool: Spool = createSpool(undefined),
): { fixtures: Fixtures; problems: FixtureProblem[] } {
  const problems: FixtureProblem[] = []
  /** What is in these is not known: what the others name may be there. */
  const unreadable = new Set<string>()
  const organizations: Of<'organizations'>[] = []
  const namespaces: Namespace[] = []
  const apiKeys: (Of<'apiKeys'> & { readonly file: string })[] = []
  const servers: ServerDetail[] = []
  const connections = collectReady(spool)
  let connectionCount = 0
  const mocks: Of<'mocks'>[] = []
  const references = createReferences()

  const organizationIds = new Set<string>()
  const namespaceNames = new Set<string>()
  const keyTexts = new Set<string>()
  const serverNames = new Set<string>()
  const toolNames = new Set<string>()
  const connectionIds = new Map<string, Set<string>>()

  for (const { file, read } of sources) {
    let whole: unknown
    const at = (place: string) => ({ file, place, record: recordAt(whole, place) })
    const problem = (place: string, message: string) => problems.push({ ...at(place), message })
    // Places are put into words only when there is something to say: a large set has a million.
    const claim = (known: Set<string>, name: string, place: () => string) => {
      if (known.has(name)) problem(place(), `${JSON.stringify(name)} is given twice`)
      known.add(name)
    }
    const refer = (kind: string, known: ReadonlySet<string>, name: string, place: () => string) => {
      if (!known.has(name)) references.add(kind, known, name, () => at(place()))
    }
    /** A broken entry is told once: whoever names it is not told that it is not there. */
    const unsound = (kind: string, entry: Readonly<Record<string, unknown>>, index: number) => {
      const { organizationId, namespace, qualifiedName, tools } = entry
      // What it names is looked for all the same.
      if (kind === 'connections' && typeof namespace === 'string')
        refer('namespace', namespaceNames, namespace, () => `connections[${index}].namespace`)
      if ((kind === 'connections' || kind === 'mocks') && typeof entry['server'] === 'string')
        refer('server', serverNames, entry['server'], () => `${kind}[${index}].server`)
      if (kind === 'organizations') organizationIds.add(String(organizationId))
      if (kind === 'namespaces') namespaceNames.add(String(namespace))
      if (kind !== 'servers') return
      serverNames.add(String(qualifiedName))
      for (const tool of Array.isArray(tools) ? tools : []) {
        toolNames.add(`${qualifiedName}\0${(tool as { name?: unknown } | null)?.name}`)
      }
    }
    whole = readWhole(read(), problem)
    const document = whole === undefined ? undefined : readDocument(whole, problem, unsound)
    if (document === undefined) {
      unreadable.add(file)
      continue
    }

    for (const [i, organization] of present(document.organizations)) {
      claim(organizationIds, organization.organizationId, () => `organizations[${i}].organizationId`)
      const members = new Set<string>()
      for (const [j, { userId }] of organization.members.entries()) {
        claim(members, userId, () => `organizations[${i}].members[${j}].userId`)
      }
      organizations.push(organization)
    }
    for (const [i, namespace] of present(document.namespaces)) {
      claim(namespaceNames, namespace.namespace, () => `namespaces[${i}].namespace`)
      if ('organizationId' in namespace) {
        refer('organization', organizationIds, namespace.organizationId, () => `namespaces[${i}].organizationId`)
      }
      namespaces.push(namespace)
    }
    for (const [i, apiKey] of present(document.apiKeys)) {
      const message = chosenKeyProblem(apiKey.key)
      if (message !== undefined) problem(`apiKeys[${i}].key`, message)
      if (keyTexts.has(apiKey.key)) problem(`apiKeys[${i}].key`, 'is given twice')
      keyTexts.add(apiKey.key)
      apiKeys.push({ ...apiKey, file })
    }
    for (const [i, server] of present(document.servers)) {
      claim(serverNames, server.qualifiedName, () => `servers[${i}].qualifiedName`)
      refer('namespace', namespaceNames, namespaceOf(server.qualifiedName), () => `servers[${i}].qualifiedName`)
      const detail = completeServer(server)
      const size = Buffer.byteLength(JSON.stringify(detail))
      if (size > serverBytesMax) problem(`servers[${i}]`, `has ${size} bytes; at most ${serverBytesMax} are kept`)
      const wrongUrl = serverUrlProblem(detail)
      if (wrongUrl !== undefined) problem(`servers[${i}].${wrongUrl.place}`, wrongUrl.message)
      const tools = new Set<string>()
      for (const [j, { name }] of (detail.tools ?? []).entries()) {
        claim(tools, name, () => `servers[${i}].tools[${j}].name`)
        toolNames.add(`${detail.qualifiedName}\0${name}`)
      }
      servers.push(detail)
    }
    for (const [i, connection] of present(document.connections)) {
      const { namespace, connectionId, server } = connection
      let ids = connectionIds.get(namespace)
      if (ids === undefined) {
        ids = new Set()
        connectionIds.set(namespace, ids)
      }
      claim(ids, connectionId, () => `connections[${i}].connectionId`)
      refer('namespace', namespaceNames, namespace, () => `connections[${i}].namespace`)
      if (server !== undefined) refer('server', serverNames, server, () => `connections[${i}].server`)
      const message = connectionProblem(connection)
      if (message !== undefined) problem(`connections[${i}].mcpUrl`, message)
      if (connection.mock?.enabled === true && server === undefined) {
        problem(`connections[${i}].mock`, 'needs a server: the registered one that it answers for')
      }
      const size = connections.add(namespace, completeConnection(connection), server)
      if (size > connectionBytesMax)
        problem(`connections[${i}]`, `has ${size} bytes; at most ${connectionBytesMax} are kept`)
      connectionCount += 1
      if (connectionCount % 10_000 === 0) onProgress(connectionCount)
    }
    for (const [i, mock] of present(document.mocks)) {
      refer('server', serverNames, mock.server, () => `mocks[${i}].server`)
      if ((mock.result === undefined) === (mock.error === undefined)) {
        problem(`mocks[${i}]`, 'must have a result or an error, and not both')
      }
      refer('tool', toolNames, `${mock.server}\0${mock.tool}`, () => `mocks[${i}].tool`)
      mocks.push(mock)
    }
  }

  if (unreadable.size === 0) problems.push(...references.problems({ serverNames, namespaceNames }))
  // The true cause first: what else is told may follow from it.
  else problems.sort((a, b) => Number(unreadable.has(b.file)) - Number(unreadable.has(a.file)))
  const ready = connections.ready()
  return { fixtures: { organizations, namespaces, apiKeys, servers, connections: ready, mocks }, problems }
}

/** The entries of a list with their places, holes left out. */
function* present<T>(list: readonly T[] | undefined): Generator<[number, T]> {
  for (const [index, entry] of (list ?? []).entries()) if (entry !== undefined) yield [index, entry]
}

type Unsound = (kind: string, entry: Readonly<Record<string, unknown>>, index: number) => void

type Tell = (place: string, message: string) => void

/** Undefined for what is no JSON, or could be read in two ways. */
function readWhole(bytes: Uint8Array, problem: Tell): unknown {
  const read = readJsonBytes(bytes, { depthMax, numbers: 'exact' })
  if (!('problem' in read)) return read.value
  problem(read.problem.place, read.problem.message)
  return undefined
}

function readDocument(whole: unknown, problem: Tell, unsound: Unsound): FixtureFile | undefined {
  if (fileShape.accepts(whole)) return whole
  const misowned = misownedNamespaces(whole)
  for (const { place, message } of fileShape.problems(whole, problemsPerFileMax)) {
    const [namespace = ''] = /^namespaces\[\d+\]/.exec(place) ?? []
    const owners = misowned.get(namespace)
    if (owners === undefined) problem(place, message)
    else if (owners !== 'told') {
      problem(namespace, owners)
      misowned.set(namespace, 'told')
    }
  }
  return soundPart(whole, unsound)
}

/** By place, what is wrong with who owns a namespace: a shape could only say that a field is missing or unknown. */
function misownedNamespaces(whole: unknown): Map<string, string> {
  const found = new Map<string, string>()
  const { namespaces } = (whole ?? {}) as { namespaces?: unknown }
  for (const [index, entry] of (Array.isArray(namespaces) ? namespaces : []).entries()) {
    if (typeof entry !== 'object' || entry === null) continue
    const owners = ['organizationId', 'userId'].filter((field) => Object.hasOwn(entry, field))
    if (owners.length === 1) continue
    const which =
      owners.length === 2 ? 'has both an organizationId and a userId' : 'has no organizationId and no userId'
    found.set(`namespaces[${index}]`, `${which}: a namespace belongs to an organization or to a user`)
  }
  return found
}

/** Of a document with problems, the entries that have none: the others are checked for what is left all the same. */
function soundPart(document: unknown, unsound: Unsound): FixtureFile | undefined {
  if (typeof document !== 'object' || document === null || Array.isArray(document)) return undefined
  const sound: Record<string, unknown[]> = {}
  for (const [kind, shape] of Object.entries(entryShapes)) {
    const entries: unknown = (document as Record<string, unknown>)[kind]
    if (!Array.isArray(entries)) continue
    // A hole where an entry was, so that the places of the others stay right.
    sound[kind] = []
    for (const [index, entry] of entries.entries()) {
      if (shape.accepts(entry)) sound[kind][index] = entry
      else if (typeof entry === 'object' && entry !== null) unsound(kind, entry as Record<string, unknown>, index)
    }
  }
  return sound as FixtureFile
}

/** The fields that a fixture may leave out, as the contract fills them. */
function completeServer(server: NonNullable<FixtureFile['servers']>[number]): ServerDetail {
  const { qualifiedName, displayName, description, remote, connections } = server
  return {
    qualifiedName,
    displayName,
    description,
    iconUrl: server.iconUrl ?? null,
    remote,
    deploymentUrl: server.deploymentUrl ?? null,
    connections,
    security: server.security ?? null,
    tools:
      server.tools?.map(({ description: text = null, name, ...rest }) => ({ name, description: text, ...rest })) ??
      null,
    resources: server.resources ?? null,
    prompts: server.prompts ?? null,
  }
}

function connectionProblem({ transport = 'http', mcpUrl = null }: FixtureConnection): string | undefined {
  if (transport === 'uplink' && mcpUrl !== null) return 'must be null or left out for an uplink'
  if (transport === 'http' && mcpUrl === null) return 'is missing'
  return mcpUrl === null ? undefined : urlProblem(mcpUrl)
}

function completeConnection(given: FixtureConnection): Connection {
  const { connectionId, mock, iconUrl, createdAt, serverInfo } = given
  return {
    connectionId,
    name: given.name ?? connectionId,
    mcpUrl: given.mcpUrl ?? null,
    metadata: given.metadata ?? null,
    transport: given.transport ?? 'http',
    ...(mock !== undefined && { mock }),
    ...(iconUrl !== undefined && { iconUrl }),
    createdAt: createdAt ?? '',
    status: given.status ?? { state: 'connected' },
    ...(serverInfo !== undefined && { serverInfo }),
  }
}
