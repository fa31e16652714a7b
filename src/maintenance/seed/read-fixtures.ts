/**
 * Reads fixture files: every file completely, and all problems at once, each with file and place. The result is
 * consistent in itself. Nothing is written to the store.
 */

import { chosenKeyProblem } from '../../auth/api-key.ts'
import { connectionBytesMax, fixtureDepthMax, serverBytesMax } from '../../limits.ts'
import { namespaceOf } from '../../model/names.ts'
import { Namespace } from '../../model/organization.ts'
import { RecordedAnswer } from '../../model/recorded-answer.ts'
import { type ServerDetail, serverUrlProblem } from '../../model/server.ts'
import { validatorOf } from '../../schema/check.ts'
import { readJsonBytes } from '../../schema/json.ts'
import { didYouMean, nearName } from '../../schema/near-name.ts'
import { completeConnection, completeServer, connectionProblem } from './complete.ts'
import { FixtureConnections } from './connections-by-namespace.ts'
import { FixtureApiKey, FixtureConnection, FixtureFile, FixtureOrganization, FixtureServer } from './fixture-schema.ts'
import { type FixtureProblem, positionIn } from './problem.ts'
import { createReferences } from './references.ts'
import type { SourceFile } from './source-files.ts'
import { Spool } from './spool.ts'

/** Problems of one fixture file, more than anyone reads at once. Past it: not reported. */
const problemsPerFileMax = 1000

type Of<K extends keyof FixtureFile> = NonNullable<FixtureFile[K]>[number]

/** All fixtures of a set. Connections are in the spool, everything else is in memory. */
export interface Fixtures {
  readonly organizations: readonly Of<'organizations'>[]
  readonly namespaces: readonly Namespace[]
  readonly apiKeys: readonly (Of<'apiKeys'> & { readonly file: string })[]
  readonly servers: readonly ServerDetail[]
  /** Where each organization, namespace, server and recorded answer stands: `file: path`. */
  readonly places: ReadonlyMap<object, string>
  readonly connections: FixtureConnections
  readonly mocks: readonly Of<'mocks'>[]
}

const fileShape = validatorOf(FixtureFile)
/** Validators of single entries, for a file that is not valid as a whole. */
const entryShapes = {
  organizations: validatorOf(FixtureOrganization),
  namespaces: validatorOf(Namespace),
  apiKeys: validatorOf(FixtureApiKey),
  servers: validatorOf(FixtureServer),
  connections: validatorOf(FixtureConnection),
  mocks: validatorOf(RecordedAnswer),
}

/** Called every 10,000 connections with the number read so far. */
export type ReadProgress = (connections: number) => void

/**
 * Reads and checks all files as one set. If there are problems, the fixtures must not be used. Connections are kept in
 * the spool, which must stay open while they are used. Throws CommandError for a file that cannot be read.
 */
export function readFixtures(
  sources: Iterable<SourceFile>,
  onProgress: ReadProgress = () => {},
  spool = new Spool(),
): { fixtures: Fixtures; problems: FixtureProblem[] } {
  const reader = new FixtureReader(spool, onProgress)
  for (const source of sources) reader.read(source)
  return reader.end()
}

/**
 * The place of something, such as `servers[2].url`. A function, because it is needed only for a problem and a large set
 * has a million places.
 */
type Path = () => string

/** The state of reading one set of files. */
class FixtureReader {
  readonly #problems: FixtureProblem[] = []
  /**
   * Files that could not be parsed. While there are any, missing names are not reported: these files may define them.
   */
  readonly #unreadable = new Set<string>()
  readonly #organizations: Of<'organizations'>[] = []
  readonly #namespaces: Namespace[] = []
  readonly #apiKeys: (Of<'apiKeys'> & { readonly file: string })[] = []
  readonly #servers: ServerDetail[] = []
  readonly #mocks: Of<'mocks'>[] = []
  readonly #places = new Map<object, string>()
  readonly #connections: FixtureConnections
  readonly #onProgress: ReadProgress
  readonly #references = createReferences()

  /** All names defined so far, in all files, to detect duplicates and check references. */
  readonly #organizationIds = new Set<string>()
  readonly #namespaceNames = new Set<string>()
  readonly #keyTexts = new Set<string>()
  readonly #serverNames = new Set<string>()
  readonly #toolNames = new Set<string>()
  readonly #connectionIds = new Map<string, Set<string>>()
  #connectionCount = 0
  /** The current file. */
  #file = ''
  #document: unknown

  constructor(spool: Spool, onProgress: ReadProgress) {
    this.#connections = new FixtureConnections(spool)
    this.#onProgress = onProgress
  }

  read({ file, read }: SourceFile): void {
    this.#file = file
    const report = (place: string, message: string) => this.#report(place, message)
    this.#document = readWhole(read(), report)
    const document =
      this.#document === undefined
        ? undefined
        : readDocument(this.#document, report, (kind, entry, index) => this.#registerInvalid(kind, entry, index))
    if (document === undefined) {
      this.#unreadable.add(file)
      return
    }
    for (const [i, organization] of definedEntries(document.organizations)) this.#addOrganization(i, organization)
    for (const [i, namespace] of definedEntries(document.namespaces)) this.#addNamespace(i, namespace)
    for (const [i, apiKey] of definedEntries(document.apiKeys)) this.#addApiKey(i, apiKey)
    for (const [i, server] of definedEntries(document.servers)) this.#addServer(i, server)
    for (const [i, connection] of definedEntries(document.connections)) this.#addConnection(i, connection)
    for (const [i, mock] of definedEntries(document.mocks)) this.#addMock(i, mock)
  }

  end(): { fixtures: Fixtures; problems: FixtureProblem[] } {
    const problems = this.#problems
    const unreadable = this.#unreadable
    if (unreadable.size === 0) {
      const names = { serverNames: this.#serverNames, namespaceNames: this.#namespaceNames }
      problems.push(...this.#references.problems(names))
    }
    // Report unreadable files first: other problems may be caused by them.
    else problems.sort((a, b) => Number(unreadable.has(b.file)) - Number(unreadable.has(a.file)))
    return {
      fixtures: {
        organizations: this.#organizations,
        namespaces: this.#namespaces,
        apiKeys: this.#apiKeys,
        servers: this.#servers,
        places: this.#places,
        connections: this.#connections,
        mocks: this.#mocks,
      },
      problems,
    }
  }

  #addOrganization(i: number, organization: Of<'organizations'>): void {
    this.#declareUnique(this.#organizationIds, organization.organizationId, () => `organizations[${i}].organizationId`)
    const members = new Set<string>()
    for (const [j, { userId }] of organization.members.entries()) {
      this.#declareUnique(members, userId, () => `organizations[${i}].members[${j}].userId`)
    }
    this.#organizations.push(organization)
    this.#places.set(organization, `${this.#file}: organizations[${i}]`)
  }

  #addNamespace(i: number, namespace: Namespace): void {
    this.#declareUnique(this.#namespaceNames, namespace.namespace, () => `namespaces[${i}].namespace`)
    if ('organizationId' in namespace) {
      const path = () => `namespaces[${i}].organizationId`
      this.#requireReference('organization', this.#organizationIds, namespace.organizationId, path)
    }
    this.#namespaces.push(namespace)
    this.#places.set(namespace, `${this.#file}: namespaces[${i}]`)
  }

  #addApiKey(i: number, apiKey: Of<'apiKeys'>): void {
    const message = chosenKeyProblem(apiKey.key)
    if (message !== undefined) this.#report(`apiKeys[${i}].key`, message)
    if (this.#keyTexts.has(apiKey.key)) this.#report(`apiKeys[${i}].key`, 'is given twice')
    this.#keyTexts.add(apiKey.key)
    this.#apiKeys.push({ ...apiKey, file: this.#file })
  }

  #addServer(i: number, server: Of<'servers'>): void {
    const { qualifiedName } = server
    const path = () => `servers[${i}].qualifiedName`
    this.#declareUnique(this.#serverNames, qualifiedName, path)
    this.#requireReference('namespace', this.#namespaceNames, namespaceOf(qualifiedName), path)
    const detail = completeServer(server)
    const size = Buffer.byteLength(JSON.stringify(detail))
    if (size > serverBytesMax) this.#report(`servers[${i}]`, `has ${size} bytes; at most ${serverBytesMax} are kept`)
    const wrongUrl = serverUrlProblem(detail)
    if (wrongUrl !== undefined) this.#report(`servers[${i}].${wrongUrl.place}`, wrongUrl.message)
    const tools = new Set<string>()
    for (const [j, { name }] of (detail.tools ?? []).entries()) {
      this.#declareUnique(tools, name, () => `servers[${i}].tools[${j}].name`)
      this.#toolNames.add(`${detail.qualifiedName}\0${name}`)
    }
    this.#servers.push(detail)
    this.#places.set(detail, `${this.#file}: servers[${i}]`)
  }

  #addConnection(i: number, connection: Of<'connections'>): void {
    const { namespace, connectionId, server } = connection
    let ids = this.#connectionIds.get(namespace)
    if (ids === undefined) {
      ids = new Set()
      this.#connectionIds.set(namespace, ids)
    }
    this.#declareUnique(ids, connectionId, () => `connections[${i}].connectionId`)
    this.#requireReference('namespace', this.#namespaceNames, namespace, () => `connections[${i}].namespace`)
    if (server !== undefined) {
      this.#requireReference('server', this.#serverNames, server, () => `connections[${i}].server`)
    }
    const message = connectionProblem(connection)
    if (message !== undefined) this.#report(`connections[${i}].mcpUrl`, message)
    if (connection.mock?.enabled === true && server === undefined) {
      this.#report(`connections[${i}].mock`, 'needs a server: the registered one that it answers for')
    }
    const size = this.#connections.add(namespace, completeConnection(connection), server)
    if (size > connectionBytesMax) {
      this.#report(`connections[${i}]`, `has ${size} bytes; at most ${connectionBytesMax} are kept`)
    }
    this.#connectionCount += 1
    if (this.#connectionCount % progressEvery === 0) this.#onProgress(this.#connectionCount)
  }

  #addMock(i: number, mock: Of<'mocks'>): void {
    this.#requireReference('server', this.#serverNames, mock.server, () => `mocks[${i}].server`)
    if ((mock.result === undefined) === (mock.error === undefined)) {
      this.#report(`mocks[${i}]`, 'must have a result or an error, and not both')
    }
    this.#requireReference('tool', this.#toolNames, `${mock.server}\0${mock.tool}`, () => `mocks[${i}].tool`)
    this.#mocks.push(mock)
    this.#places.set(mock, `${this.#file}: mocks[${i}]`)
  }

  /** Registers the names of an invalid entry, so that references to it are not reported as missing as well. */
  #registerInvalid(kind: string, entry: Readonly<Record<string, unknown>>, index: number): void {
    const { organizationId, namespace, qualifiedName, server, tools } = entry
    // References in an invalid entry are checked nevertheless.
    if (kind === 'connections' && typeof namespace === 'string') {
      this.#requireReference('namespace', this.#namespaceNames, namespace, () => `connections[${index}].namespace`)
    }
    if ((kind === 'connections' || kind === 'mocks') && typeof server === 'string') {
      this.#requireReference('server', this.#serverNames, server, () => `${kind}[${index}].server`)
    }
    if (kind === 'organizations') this.#organizationIds.add(String(organizationId))
    if (kind === 'namespaces') this.#namespaceNames.add(String(namespace))
    if (kind !== 'servers') return
    this.#serverNames.add(String(qualifiedName))
    for (const tool of Array.isArray(tools) ? tools : []) {
      this.#toolNames.add(`${qualifiedName}\0${(tool as { name?: unknown } | null)?.name}`)
    }
  }

  /** Registers a name; reports a duplicate. */
  #declareUnique(names: Set<string>, name: string, path: Path): void {
    if (names.has(name)) this.#report(path(), `${JSON.stringify(name)} is given twice`)
    names.add(name)
  }

  /** Checks that a name exists, now or by the end of the last file. */
  #requireReference(kind: string, names: ReadonlySet<string>, name: string, path: Path): void {
    if (names.has(name)) return
    // Capture both: they will have changed when the place is needed.
    const [file, document] = [this.#file, this.#document]
    this.#references.add(kind, names, name, () => positionIn(file, document, path()))
  }

  #report(place: string, message: string): void {
    this.#problems.push({ ...positionIn(this.#file, this.#document, place), message })
  }
}

/** Connections between two reports of progress. */
const progressEvery = 10_000

/** The entries of a list with their indexes, without holes. */
function* definedEntries<T>(list: readonly T[] | undefined): Generator<[number, T]> {
  for (const [index, entry] of (list ?? []).entries()) if (entry !== undefined) yield [index, entry]
}

type RegisterInvalid = (kind: string, entry: Readonly<Record<string, unknown>>, index: number) => void

type Report = (place: string, message: string) => void

/**
 * Parses a file. Undefined, with the problem reported, if it is not JSON or is ambiguous (duplicate keys, numbers that
 * lose digits).
 */
function readWhole(bytes: Uint8Array, report: Report): unknown {
  const read = readJsonBytes(bytes, { depthMax: fixtureDepthMax, numbers: 'exact' })
  if (!('problem' in read)) return read.value
  report(read.problem.place, read.problem.message)
  return undefined
}

/**
 * Checks a parsed file. If it is invalid, reports its problems and returns its valid entries, so that one run finds as
 * many problems as possible. Undefined if it is not an object.
 */
function readDocument(whole: unknown, report: Report, registerInvalid: RegisterInvalid): FixtureFile | undefined {
  if (fileShape.isValid(whole)) return whole
  const misowned = misownedNamespaces(whole)
  for (const { place, message } of fileShape.problems(whole, problemsPerFileMax)) {
    const [namespace = ''] = /^namespaces\[\d+\]/.exec(place) ?? []
    const owners = misowned.get(namespace)
    if (owners === undefined) report(place, message)
    else if (owners !== 'reported') {
      report(namespace, owners)
      misowned.set(namespace, 'reported')
    }
  }
  return validEntries(whole, registerInvalid)
}

/**
 * By place, problems with the owner of a namespace. The schema's own message would only report a missing or unknown
 * field, and those that are known to one of its two forms.
 */
function misownedNamespaces(whole: unknown): Map<string, string> {
  const found = new Map<string, string>()
  const { namespaces } = (whole ?? {}) as { namespaces?: unknown }
  for (const [index, entry] of (Array.isArray(namespaces) ? namespaces : []).entries()) {
    if (typeof entry !== 'object' || entry === null) continue
    const place = `namespaces[${index}]`
    const misspelt = Object.keys(entry).find((field) => nearName(field, owning) !== undefined)
    if (misspelt !== undefined) {
      found.set(place, `has the unknown field ${JSON.stringify(misspelt)}${didYouMean(misspelt, owning)}`)
      continue
    }
    const owners = owning.filter((field) => Object.hasOwn(entry, field))
    if (owners.length === 1) continue
    const which =
      owners.length === 2 ? 'has both an organizationId and a userId' : 'has no organizationId and no userId'
    found.set(place, `${which}: a namespace belongs to an organization or to a user`)
  }
  return found
}

const owning = ['organizationId', 'userId']

/** The valid entries of an invalid document. Only these are checked further. */
function validEntries(document: unknown, registerInvalid: RegisterInvalid): FixtureFile | undefined {
  if (typeof document !== 'object' || document === null || Array.isArray(document)) return undefined
  const valid: Record<string, unknown[]> = {}
  for (const [kind, shape] of Object.entries(entryShapes)) {
    const entries: unknown = (document as Record<string, unknown>)[kind]
    if (!Array.isArray(entries)) continue
    // Leave a hole for an invalid entry, so that the indexes of the others stay right.
    valid[kind] = []
    for (const [index, entry] of entries.entries()) {
      if (shape.isValid(entry)) valid[kind][index] = entry
      else if (typeof entry === 'object' && entry !== null)
        registerInvalid(kind, entry as Record<string, unknown>, index)
    }
  }
  return valid as FixtureFile
}
