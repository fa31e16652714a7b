/** Reads fixture files as a consistent set: all of them, with all problems at once, each with file and place. */

import { type Static, Type } from '@sinclair/typebox'
import { chosenKeyProblem } from '../../auth/chosen-key.ts'
import { connectionBytesMax, fixtureDepthMax, serverBytesMax } from '../../limits.ts'
import type { ConnectionRef } from '../../model/connection.ts'
import { namespaceOf } from '../../model/names.ts'
import { Namespace, NamespaceWrite } from '../../model/organization.ts'
import { RecordedAnswer } from '../../model/recorded-answer.ts'
import type { ServerDetail } from '../../model/server.ts'
import { FixtureView } from '../../model/view.ts'
import { nextTurn } from '../../next-turn.ts'
import { viewPolicyProblem } from '../../policy/view-policy.ts'
import { type Problem, type Validator, validatorOf } from '../../schema/check.ts'
import { readJsonBytes } from '../../schema/json.ts'
import { closedObject, OptionalText } from '../../schema/shapes.ts'
import { drained } from '../../schema/steps.ts'
import { connectionBytes } from '../../storage/connections.ts'
import { keyOf } from '../../storage/keys.ts'
import { Spool } from '../spool.ts'
import { completeConnection, completeServer, connectionProblem } from './complete.ts'
import {
  FixtureApiKey,
  FixtureConnection,
  type FixtureFile,
  FixtureOrganization,
  FixtureServer,
} from './fixture-schema.ts'
import { type FixtureProblem, positionIn } from './problem.ts'
import { createReferences } from './references.ts'
import type { SourceFile } from './source-files.ts'

/** Problems of one fixture file, more than anyone reads at once. Past it: not reported. */
const problemsPerFileMax = 1000

type Of<K extends keyof FixtureFile> = NonNullable<FixtureFile[K]>[number]

/** All fixtures of a set. Connections are in a spool, everything else is in memory. */
export type Fixtures = ReturnType<typeof noFixtures>

function noFixtures(connections: Spool) {
  return {
    organizations: [] as Of<'organizations'>[],
    namespaces: [] as Namespace[],
    views: [] as Of<'views'>[],
    apiKeys: [] as Of<'apiKeys'>[],
    servers: [] as ServerDetail[],
    /** Where each organization, namespace, view, API key, server and recorded answer stands: `file: path`. */
    places: new Map<object, string>(),
    /** The JSON of a `FixtureConnection`, by the key of its record. */
    connections,
    /** The ids of all connections, by namespace. */
    connectionIds: new Map<string, Set<string>>(),
    /** The first connection and the first mocked one, for the greeting. */
    examples: {} as { first?: ConnectionRef; firstMocked?: ConnectionRef },
    mocks: [] as Of<'mocks'>[],
  }
}

/** A namespace whose owners are counted afterwards: messages about two variants would not say what is wrong. */
const OwnedNamespace = closedObject({ ...Namespace.anyOf[0].properties, ...NamespaceWrite.properties })

const entryShapes = {
  organizations: validatorOf(FixtureOrganization),
  namespaces: validatorOf(OwnedNamespace),
  views: validatorOf(FixtureView),
  apiKeys: validatorOf(FixtureApiKey),
  servers: validatorOf(FixtureServer),
  connections: validatorOf(FixtureConnection),
  mocks: validatorOf(RecordedAnswer),
}
type EntryOf<K extends keyof typeof entryShapes> = (typeof entryShapes)[K] extends Validator<infer T> ? T : never
/** The file around the entries. */
const fileShape = validatorOf(
  closedObject({
    $schema: OptionalText,
    ...Object.fromEntries(Object.keys(entryShapes).map((kind) => [kind, Type.Optional(Type.Array(Type.Unknown()))])),
  }),
)

/**
 * Reads and checks all files as one set. The caller must not use the fixtures if there are problems, nor after closing
 * the spool, which holds the connections. `onProgress` is called every 10,000 connections. Others have a turn of the
 * event loop after each file. Rejects with CommandError for a file that cannot be read.
 */
export async function readFixtures(
  sources: Iterable<SourceFile>,
  onProgress: (connections: number) => void = () => {},
  spool = new Spool(),
): Promise<{ fixtures: Fixtures; problems: FixtureProblem[] }> {
  const reader = new FixtureReader(spool, onProgress)
  for (const source of sources) {
    reader.read(source)
    // A server that reads them again has others to answer.
    await nextTurn()
  }
  return reader.end()
}

class FixtureReader {
  readonly #problems: FixtureProblem[] = []
  /** Files that could not be parsed. They may define names, so no missing ones are reported. */
  readonly #unreadable = new Set<string>()
  readonly #fixtures: Fixtures
  readonly #onProgress: (connections: number) => void

  /** All names defined so far, in all files, to detect duplicates and check references. */
  readonly #names = {
    organization: new Set<string>(),
    namespace: new Set<string>(),
    view: new Set<string>(),
    apiKey: new Set<string>(),
    server: new Set<string>(),
    /** SERVER NUL TOOL. */
    tool: new Set<string>(),
  }
  readonly #references = createReferences(this.#names)
  /** The current file, and the place in it of the entry that is being read, such as `servers[2]`. */
  #file = ''
  #place = ''
  #document: unknown
  /** How many more of its problems with schemas are reported. */
  #left = 0

  constructor(spool: Spool, onProgress: (connections: number) => void) {
    this.#fixtures = noFixtures(spool)
    this.#onProgress = onProgress
  }

  read({ file, read }: SourceFile): void {
    this.#file = file
    this.#place = ''
    this.#left = problemsPerFileMax
    // Ambiguous JSON is refused, too: keys that are there twice, and numbers that would lose digits.
    const parsed = readJsonBytes(read(), { depthMax: fixtureDepthMax, numbers: 'exact' })
    this.#document = 'problem' in parsed ? undefined : parsed.value
    if ('problem' in parsed) this.#report(parsed.problem.place, parsed.problem.message)
    else if (!fileShape.isValid(parsed.value)) this.#reportAll(fileShape.problems(parsed.value))
    if (typeof this.#document !== 'object' || this.#document === null || Array.isArray(this.#document)) {
      this.#unreadable.add(file)
      return
    }
    const { organizations, namespaces, views, apiKeys, servers, mocks } = this.#fixtures
    this.#each('organizations', organizations, (organization) => this.#readOrganization(organization))
    this.#each('namespaces', namespaces, (namespace) => this.#readNamespace(namespace))
    this.#each('views', views, (view) => this.#readView(view))
    this.#each('apiKeys', apiKeys, (apiKey) => this.#readApiKey(apiKey))
    this.#each('servers', servers, (server) => this.#readServer(server))
    this.#each('connections', [], (connection) => this.#addConnection(connection))
    this.#each('mocks', mocks, (mock) => this.#readMock(mock))
  }

  /** Adds what `read` makes of valid entries to `all`, with their places, and reports the problems of all others. */
  #each<K extends keyof typeof entryShapes, T extends object>(
    kind: K,
    all: T[],
    read: (entry: EntryOf<K>) => T | undefined,
  ): void {
    const shape: Validator<unknown> = entryShapes[kind]
    const entries = (this.#document as Readonly<Record<string, unknown>>)[kind]
    for (const [index, entry] of (Array.isArray(entries) ? (entries as unknown[]) : []).entries()) {
      this.#place = `${kind}[${index}]`
      if (shape.isValid(entry)) {
        const kept = read(entry as EntryOf<K>)
        if (kept === undefined) continue
        all.push(kept)
        this.#fixtures.places.set(kept, `${this.#file}: ${this.#place}`)
        continue
      }
      if (this.#left > 0) this.#reportAll(shape.problems(entry, this.#left))
      if (typeof entry === 'object' && entry !== null) this.#registerInvalid(kind, entry as Record<string, unknown>)
    }
  }

  #reportAll(problems: readonly Problem[]): void {
    this.#left -= problems.length
    for (const { place, message } of problems)
      this.#report(this.#place === '' || place === '' || place.startsWith('[') ? place : `.${place}`, message)
  }

  end(): { fixtures: Fixtures; problems: FixtureProblem[] } {
    const problems = this.#problems
    const unreadable = this.#unreadable
    if (unreadable.size === 0) problems.push(...this.#references.problems())
    // Report unreadable files first: other problems may be caused by them.
    else problems.sort((a, b) => Number(unreadable.has(b.file)) - Number(unreadable.has(a.file)))
    return { fixtures: this.#fixtures, problems }
  }

  #readOrganization(organization: Of<'organizations'>): Of<'organizations'> {
    this.#declareUnique(this.#names.organization, organization.organizationId, '.organizationId')
    const members = new Set<string>()
    for (const [j, { userId }] of organization.members.entries()) {
      this.#declareUnique(members, userId, `.members[${j}].userId`)
    }
    return organization
  }

  #readNamespace(namespace: Static<typeof OwnedNamespace>): Namespace | undefined {
    this.#declareUnique(this.#names.namespace, namespace.namespace, '.namespace')
    const { organizationId, userId } = namespace
    if ((organizationId === undefined) === (userId === undefined)) {
      const which =
        userId === undefined ? 'has no organizationId and no userId' : 'has both an organizationId and a userId'
      this.#report('', `${which}: a namespace belongs to an organization or to a user`)
      return undefined
    }
    if (organizationId !== undefined) this.#requireReference('organization', organizationId, '.organizationId')
    return namespace as Namespace
  }

  #readView(view: Of<'views'>): Of<'views'> {
    const { namespace, name, policy } = view
    this.#declareUnique(this.#names.view, `${namespace}/${name}`, '.name')
    this.#requireReference('namespace', namespace, '.namespace')
    const problem = drained(viewPolicyProblem(policy))
    if (problem !== undefined) this.#report(`.${problem.place}`, problem.message)
    return view
  }

  #readApiKey(apiKey: Of<'apiKeys'>): Of<'apiKeys'> {
    const message = chosenKeyProblem(apiKey.key)
    if (message !== undefined) this.#report('.key', message)
    if (this.#names.apiKey.has(apiKey.key)) this.#report('.key', 'is given twice')
    this.#names.apiKey.add(apiKey.key)
    return apiKey
  }

  #readServer(server: Of<'servers'>): ServerDetail {
    const { qualifiedName } = server
    this.#declareUnique(this.#names.server, qualifiedName, '.qualifiedName')
    this.#requireReference('namespace', namespaceOf(qualifiedName), '.qualifiedName')
    const detail = completeServer(server)
    const size = Buffer.byteLength(JSON.stringify(detail))
    if (size > serverBytesMax) this.#report('', `has ${size} bytes; at most ${serverBytesMax} are kept`)
    const tools = new Set<string>()
    for (const [j, { name }] of (detail.tools ?? []).entries()) {
      this.#declareUnique(tools, name, `.tools[${j}].name`)
      this.#names.tool.add(`${detail.qualifiedName}\0${name}`)
    }
    return detail
  }

  #addConnection(connection: Of<'connections'>): undefined {
    const { namespace, connectionId, server } = connection
    const { connections, connectionIds, examples } = this.#fixtures
    const ids = connectionIds.getOrInsertComputed(namespace, () => new Set())
    this.#declareUnique(ids, connectionId, '.connectionId')
    this.#requireReference('namespace', namespace, '.namespace')
    if (server !== undefined) this.#requireReference('server', server, '.server')
    const message = connectionProblem(connection)
    if (message !== undefined) this.#report('.mcpUrl', message)
    if (connection.mock?.enabled === true && server === undefined) {
      this.#report('.mock', 'needs a server: the registered one that it answers for')
    }
    const size = connectionBytes(completeConnection(connection, '')).length
    if (size > connectionBytesMax) this.#report('', `has ${size} bytes; at most ${connectionBytesMax} are kept`)
    connections.add(keyOf('connection', namespace, connectionId), Buffer.from(JSON.stringify(connection)))
    examples.first ??= { namespace, connectionId }
    if (connection.mock?.enabled === true) examples.firstMocked ??= { namespace, connectionId }
    if (connections.length % progressEvery === 0) this.#onProgress(connections.length)
  }

  #readMock(mock: Of<'mocks'>): Of<'mocks'> {
    this.#requireReference('server', mock.server, '.server')
    if ((mock.result === undefined) === (mock.error === undefined)) {
      this.#report('', 'must have a result or an error, and not both')
    }
    this.#requireReference('tool', `${mock.server}\0${mock.tool}`, '.tool')
    return mock
  }

  /** Registers the names of an invalid entry, so that references to it are not reported as missing as well. */
  #registerInvalid(kind: string, entry: Readonly<Record<string, unknown>>): void {
    const { organizationId, namespace, qualifiedName, server, tools } = entry
    // References in an invalid entry are checked nevertheless.
    if (kind === 'connections' && typeof namespace === 'string')
      this.#requireReference('namespace', namespace, '.namespace')
    if ((kind === 'connections' || kind === 'mocks') && typeof server === 'string')
      this.#requireReference('server', server, '.server')
    if (kind === 'organizations') this.#names.organization.add(String(organizationId))
    if (kind === 'namespaces') this.#names.namespace.add(String(namespace))
    if (kind !== 'servers') return
    this.#names.server.add(String(qualifiedName))
    for (const tool of Array.isArray(tools) ? tools : []) {
      this.#names.tool.add(`${qualifiedName}\0${(tool as { name?: unknown } | null)?.name}`)
    }
  }

  /** Registers a name; reports a duplicate. `within`: the place of the name in the entry. */
  #declareUnique(names: Set<string>, name: string, within: string): void {
    if (names.has(name)) this.#report(within, `${JSON.stringify(name)} is given twice`)
    names.add(name)
  }

  /** Checks that a name exists, now or by the end of the last file. */
  #requireReference(kind: 'organization' | 'namespace' | 'server' | 'tool', name: string, within: string): void {
    this.#references.add(kind, name, () => positionIn(this.#file, this.#document, this.#place + within))
  }

  #report(within: string, message: string): void {
    this.#problems.push({ ...positionIn(this.#file, this.#document, this.#place + within), message })
  }
}

/** Connections between two reports of progress. */
const progressEvery = 10_000
