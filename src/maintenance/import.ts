/**
 * Imports an export: one transaction, all or nothing. A record replaces the one of the same id; others stay. Every line
 * is checked before anything is written; until then memory holds names and counts, never records.
 */

import { CommandError } from '../errors.ts'
import { namespaceOf } from '../model/names.ts'
import { type Namespace, ownerName } from '../model/organization.ts'
import { viewPolicyProblem } from '../policy/view-policy.ts'
import { problemText } from '../schema/check.ts'
import { parseForeign } from '../schema/json.ts'
import { drained } from '../schema/steps.ts'
import { textOf } from '../storage/bytes.ts'
import {
  type ConnectionPrivate,
  connectionEdits,
  findConnection,
  newConnectionsVersion,
} from '../storage/connections.ts'
import {
  indexKeysOf,
  listingEntry,
  newListingVersions,
  readApiKey,
  readNamespace,
  readRevocation,
  serverEntry,
} from '../storage/directory-records.ts'
import { madeAfterEnd } from '../storage/ended-namespaces.ts'
import { directoryVersionKey, keyOf } from '../storage/keys.ts'
import { nothingStaged } from '../storage/staged.ts'
import type { Check, Entry, Key, Store } from '../storage/store.ts'
import { createUsages } from '../storage/usage.ts'
import { checkOf, newVersion } from '../storage/versions.ts'
import { type ExportLine, entriesOf } from './export-format.ts'
import { linesOf } from './import-lines.ts'
import { belongsToOthers } from './organization-owners.ts'
import { Spool } from './spool.ts'

export interface ImportOptions {
  /** Identifies this instance (`headShape`). */
  readonly secret: string
  /** Where records wait; left out: in memory. */
  readonly folder?: string
  readonly onProgress?: (stage: string, done: number) => void
}

/**
 * Durable when it resolves. Throws CommandError, with `file:line` for a bad line; then nothing was written. `leftOut`:
 * API keys of another instance, whose hashes do not work with this secret.
 */
export async function importFile(
  store: Store,
  file: string,
  { secret, folder, onProgress = () => {} }: ImportOptions,
): Promise<{ readonly records: number; readonly leftOut: number }> {
  using puts = new Spool(folder)
  using deletes = new Spool(folder)
  const plan = newPlan(store, file, deletes)
  plan.versions.push(await checkOf(store, directoryVersionKey))
  let [records, leftOut] = [0, 0]
  for (const { line, secret: exported } of linesOf(file)) {
    if (line.kind === 'apiKey' && exported !== secret) {
      leftOut += 1
      continue
    }
    records += 1
    onProgress('checking', records)
    for (const { key, value } of await comparedEntriesOf(plan, line)) puts.add(key, value)
  }
  await requireNamed(plan)
  // Fixtures that were loaded before count again at the next start: an older file may say otherwise of rights.
  deletes.add(keyOf('fixturesDigest'))
  const committed = await store.load({
    // The versions of all parts that the file was compared with: it conflicts if any of them has changed since.
    checks: [nothingStaged, ...plan.versions],
    counts: plan.usages.counts(),
    deletes: deletes.keys(),
    puts: everyEntryOf(plan, puts, onProgress),
  })
  if (!committed.ok) throw new CommandError('another process wrote to the store, so nothing was imported: try again')
  return { records, leftOut }
}

/** The facts about a file that are known so far, and the changes that it makes. */
type Plan = ReturnType<typeof newPlan>

/** `deletes`: keys of replaced connections and index entries. */
function newPlan(store: Store, file: string, deletes: Spool) {
  return {
    store,
    file,
    deletes,
    /** Organizations and namespaces that records refer to, by their name in messages. */
    named: new Map<string, Key>(),
    /** Records in the file, by the same names. A repeated connection or server is refused: it would count twice. */
    loaded: new Set<string>(),
    /** The owners in the file, by the id of each organization that it has anything of. */
    owners: new Map<string, Set<string>>(),
    /** The end of each revocation in the file, in Unix seconds, or the store's if that is later: none is shortened. */
    revokedUntil: new Map<string, number>(),
    /** The servers in the file, and those whose listings are in it: import refuses a server without its listing. */
    servers: new Set<string>(),
    listed: new Set<string>(),
    usages: createUsages(),
    /** Servers, connections and views of the file that are here already, each with its namespace. */
    replaced: new Map<string, string>(),
    /** Pins in the file whose connections have not come yet. */
    pins: new Map<string, NonNullable<ConnectionPrivate['pins']>>(),
    namespaces: new Set<string>(),
    /** Of all parts that the file is compared with, each read before anything of its part. */
    versions: [] as Check[],
  }
}

const takeOut =
  'take it out of the file, with all that is in it, and correct the number of records in the last line; or delete the one here'

/**
 * Throws CommandError for what is named and neither in the file nor in the store, for a server without its listing, for
 * an organization of others, and for what would be replaced in a namespace whose owner the file does not say.
 */
async function requireNamed(plan: Plan): Promise<void> {
  for (const name of plan.servers) {
    if (!plan.listed.has(name))
      throw new CommandError(`${plan.file}: lacks the listing of the server ${name}: export again`)
  }
  for (const name of plan.pins.keys())
    throw new CommandError(`${plan.file}: has the pins of ${name} without the connection: export again`)
  for (const [name, namespace] of plan.replaced) {
    if (!plan.loaded.has(`namespace ${namespace}`))
      throw new CommandError(
        `${plan.file}: has the ${name}, which is here already, and lacks the line of its namespace, which says whose it is: export again, or take it out of the file`,
      )
  }
  for (const [organizationId, owners] of plan.owners) {
    if (!(await belongsToOthers(plan.store, organizationId, owners))) continue
    throw new CommandError(
      `${plan.file}: has the organization ${organizationId}, which belongs to others here: ${takeOut}`,
    )
  }
  for (const [what, key] of plan.named) {
    if (!plan.loaded.has(what) && (await plan.store.get(key)) === undefined) {
      throw new CommandError(
        `${plan.file}: names the ${what}, which is neither in the file nor in the store: create it first`,
      )
    }
  }
}

type LineOf<Kind> = Extract<ExportLine, { kind: Kind }>

/** The entries of a line, once it was compared with the store. */
async function comparedEntriesOf(plan: Plan, line: ExportLine): Promise<readonly Entry[]> {
  switch (line.kind) {
    case 'apiKey':
      return apiKeyEntries(plan, line)
    case 'pins': {
      const name = `${line.namespace}/${line.connectionId}`
      const [head = ''] = line.record.split('\n', 1)
      const { id } = (parseForeign(head) ?? {}) as { id?: unknown }
      if (typeof id !== 'string') throw new CommandError(`${plan.file}: the pins of ${name} have no id: export again`)
      plan.pins.set(name, { bytes: Buffer.byteLength(line.record), id })
      break
    }
    case 'revocation': {
      const stored = readRevocation(await plan.store.get(keyOf('revocation', line.jti)))
      const until = Math.max(line.until, stored, plan.revokedUntil.get(line.jti) ?? 0)
      plan.revokedUntil.set(line.jti, until)
      return entriesOf({ ...line, until })
    }
    case 'member': {
      const owners = ownersOf(plan, line.organizationId)
      if (line.role === 'owner') owners.add(line.userId)
      break
    }
    case 'organization':
      ownersOf(plan, line.organization.organizationId)
      plan.loaded.add(`organization ${line.organization.organizationId}`)
      break
    case 'namespace':
      plan.loaded.add(`namespace ${line.namespace.namespace}`)
      await requireGone(plan, line.namespace.namespace)
      requireSameOwner(plan, line.namespace, await replace(plan, keyOf('namespace', line.namespace.namespace)))
      if ('organizationId' in line.namespace) {
        const { organizationId } = line.namespace
        plan.named.set(`organization ${organizationId}`, keyOf('organization', organizationId))
      }
      return entriesOf({ ...line, namespace: await madeAfterEnd(plan.store, line.namespace) })
    case 'view':
      await compareView(plan, line.view)
      break
    case 'server':
      await compareServer(plan, line.server)
      break
    case 'listing':
      requireOnce(plan, `listing ${line.listing.qualifiedName}`)
      await count(plan, listingEntry(line.listing))
      plan.listed.add(line.listing.qualifiedName)
      break
    case 'connection':
      plan.named.set(`namespace ${line.namespace}`, keyOf('namespace', line.namespace))
      return connectionEntries(plan, line)
    case 'mock':
  }
  return entriesOf(line)
}

async function compareView(plan: Plan, { namespace, name, policy }: LineOf<'view'>['view']): Promise<void> {
  plan.named.set(`namespace ${namespace}`, keyOf('namespace', namespace))
  const problem = drained(viewPolicyProblem(policy))
  if (problem !== undefined)
    throw new CommandError(`${plan.file}: the view ${namespace}/${name}: ${problemText(problem)}`)
  const stored = await plan.store.get(keyOf('view', namespace, name))
  if (stored !== undefined) plan.replaced.set(`view ${namespace}/${name}`, namespace)
}

async function compareServer(plan: Plan, server: LineOf<'server'>['server']): Promise<void> {
  const { qualifiedName } = server
  const namespace = namespaceOf(qualifiedName)
  plan.named.set(`namespace ${namespace}`, keyOf('namespace', namespace))
  requireOnce(plan, `server ${qualifiedName}`)
  plan.servers.add(qualifiedName)
  if ((await count(plan, serverEntry(server))) !== undefined) plan.replaced.set(`server ${qualifiedName}`, namespace)
}

/** The owners of an organization in the file, which must have it, or else the store. */
function ownersOf({ owners, named }: Plan, organizationId: string): Set<string> {
  named.set(`organization ${organizationId}`, keyOf('organization', organizationId))
  return owners.getOrInsertComputed(organizationId, () => new Set())
}

/** Refuses a namespace whose owner here differs: that owner's connections are in it, with headers and sign-ins. */
function requireSameOwner(plan: Plan, namespace: Namespace, stored: Uint8Array | undefined): void {
  if (stored === undefined) return
  const [is, was] = [ownerName(readNamespace(stored)), ownerName(namespace)]
  if (is === was) return
  throw new CommandError(
    `${plan.file}: has the namespace ${namespace.namespace} of ${was}, and here it belongs to ${is}: ${takeOut}`,
  )
}

/** Its connections would go with those of the one that is being deleted. */
async function requireGone(plan: Plan, namespace: string): Promise<void> {
  if ((await plan.store.get(keyOf('deletingNamespace', namespace))) === undefined) return
  throw new CommandError(
    `${plan.file}: the namespace ${namespace} is being deleted: start the server, which removes its connections, and import again`,
  )
}

/** Counts what an entry of a server changes of its namespace's usage. Resolves with the record that it replaces. */
async function count(plan: Plan, entry: Entry): Promise<Uint8Array | undefined> {
  const stored = await plan.store.get(entry.key)
  plan.usages.remove(entry.key, stored)
  plan.usages.add(entry)
  return stored
}

function requireOnce(plan: Plan, what: string): void {
  if (plan.loaded.has(what)) throw new CommandError(`${plan.file}: has the ${what} twice: export again`)
  plan.loaded.add(what)
}

/** The stored record that the file replaces. Its index entries go: the new ones may be others. */
async function replace(plan: Plan, key: Key): Promise<Uint8Array | undefined> {
  const value = await plan.store.get(key)
  if (value !== undefined) for (const one of indexKeysOf({ key, value })) plan.deletes.add(one)
  return value
}

async function apiKeyEntries(plan: Plan, line: LineOf<'apiKey'>): Promise<readonly Entry[]> {
  const { keyId, organizationId } = line.apiKey
  if (organizationId !== undefined) ownersOf(plan, organizationId)
  const holder = await plan.store.get(keyOf('apiKeyDigest', line.digest))
  // Somebody gave both instances one key: it has the id of the file from now on.
  const other = holder === undefined || textOf(holder) === keyId ? undefined : textOf(holder)
  const former = await replace(plan, keyOf('apiKey', keyId))
  const replaced = other === undefined ? undefined : await replace(plan, keyOf('apiKey', other))
  if (other !== undefined) plan.deletes.add(keyOf('apiKey', other))
  // An older export must not reactivate it.
  const revoked = [former, replaced].flatMap((value) => (value && readApiKey(value).revokedAt) ?? [])
  return entriesOf({ ...line, apiKey: { ...line.apiKey, revokedAt: revoked[0] ?? line.apiKey.revokedAt } })
}

async function connectionEntries(plan: Plan, line: LineOf<'connection'>): Promise<readonly Entry[]> {
  const { namespace, connection, server } = line
  const { connectionId } = connection
  const name = `${namespace}/${connectionId}`
  requireOnce(plan, `connection ${name}`)
  if (!plan.namespaces.has(namespace))
    plan.versions.push(await checkOf(plan.store, keyOf('connectionsVersion', namespace)))
  plan.namespaces.add(namespace)
  const stored = await findConnection(plan.store, namespace, connectionId)
  if (stored !== undefined) plan.replaced.set(`connection ${name}`, namespace)
  // An export contains no secrets, so a connection keeps the headers it has, but only if its URL is unchanged:
  // credentials for one server must never be sent to another.
  const isSamePlace = stored?.connection.mcpUrl === connection.mcpUrl
  const { headers, pins: kept } = isSamePlace ? (stored?.privatePart ?? {}) : {}
  const pins = plan.pins.get(name) ?? kept
  plan.pins.delete(name)
  const privatePart: ConnectionPrivate = {
    ...(server !== undefined && { server }),
    ...(headers !== undefined && { headers }),
    // A sign-in is in no export, so it ends, and all that was bound to it: tickets, and sessions of its servers.
    ...(stored !== undefined && { setups: (stored.privatePart.setups ?? 0) + 1 }),
    // As the headers: what somebody accepted of this server.
    ...(pins !== undefined && { pins }),
  }
  const edits = connectionEdits({ namespace, connectionId }, stored, { connection, privatePart })
  for (const key of edits.deletes) plan.deletes.add(key)
  plan.usages.change(namespace, edits.usage)
  return edits.puts
}

function* everyEntryOf(plan: Plan, puts: Spool, onProgress: (stage: string, done: number) => void): Generator<Entry> {
  let done = 0
  for (const entry of puts.inOrder()) {
    done += 1
    onProgress('writing', done)
    yield entry
  }
  for (const namespace of plan.namespaces) yield newConnectionsVersion(namespace)
  yield* newListingVersions(plan.listed)
  yield newVersion(directoryVersionKey)
}
