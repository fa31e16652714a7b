/**
 * Imports an export into a store: one transaction, all or nothing. A record replaces the record of the same id; all
 * others stay. Every line is checked before anything is written. Until then memory holds names and counts, never the
 * records.
 */

import { CommandError } from '../errors.ts'
import { namespaceOf } from '../model/names.ts'
import { type Namespace, ownerName } from '../model/organization.ts'
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
import { directoryVersionKey, keyOf } from '../storage/keys.ts'
import { nothingStaged } from '../storage/staged.ts'
import type { Check, Entry, Key, Store, Write } from '../storage/store.ts'
import { createUsages } from '../storage/usage.ts'
import { checkOf, newVersion } from '../storage/versions.ts'
import { type ExportLine, entriesOf } from './export-format.ts'
import { linesOf } from './import-lines.ts'
import { belongsToOthers } from './organization-owners.ts'
import { Spool } from './spool.ts'

/** Numbers of lines. */
export interface Imported {
  readonly records: number
  /** API keys that were not imported: they are of another instance, and their hashes do not work with this secret. */
  readonly leftOut: number
}

/**
 * Imports a file; durable when it resolves. `secret` identifies this instance (`headShape`). `folder`: where records
 * wait; left out: in memory. Throws CommandError, with `file:line` for a bad line; then nothing was written.
 */
export async function importFile(
  store: Store,
  file: string,
  secret: string,
  onProgress: (stage: string, done: number) => void,
  folder?: string,
): Promise<Imported> {
  using puts = new Spool(folder)
  using deletes = new Spool(folder)
  const plan = createPlan(store, file, puts, deletes)
  const imported = await plan.read(secret, onProgress)
  await plan.requireNamed()
  const committed = await store.load(plan.write(onProgress))
  if (!committed.ok) throw new CommandError('another process wrote to the store, so nothing was imported: try again')
  return imported
}

/**
 * The plan of one import. Call `read`, `requireNamed` and `write`, in this order. `deletes`: keys of replaced
 * connections and index entries.
 */
function createPlan(store: Store, file: string, puts: Spool, deletes: Spool) {
  /** Organizations and namespaces that records refer to, by their name in messages. */
  const named = new Map<string, Key>()
  /**
   * Records that the file itself contains, by the same names. Of connections and servers it reports duplicates: each
   * would be counted twice in the usage.
   */
  const loaded = new Set<string>()
  /** The ids of organizations in the file, and their owners there. */
  const organizations: string[] = []
  const owners = new Map<string, Set<string>>()
  /**
   * The end of each revocation in the file, in Unix seconds, or the store's if that is later: an import never shortens
   * one.
   */
  const revokedUntil = new Map<string, number>()
  /** The servers in the file, and those whose listings are in it: import refuses a server without its listing. */
  const servers = new Set<string>()
  const listed = new Set<string>()
  const usages = createUsages()
  /** The namespaces of connections. */
  const namespaces = new Set<string>()
  /** Of all parts that the file is compared with, each read before anything of its part. */
  const versions: Check[] = []

  /** The entries of a line, once it was compared with the store. */
  async function comparedEntriesOf(line: ExportLine): Promise<readonly Entry[]> {
    switch (line.kind) {
      case 'apiKey': {
        const stored = await replace(keyOf('apiKey', line.apiKey.keyId))
        const revokedAt = stored === undefined ? null : readApiKey(stored).revokedAt
        // An older export must not reactivate it.
        return entriesOf({ ...line, apiKey: { ...line.apiKey, revokedAt: revokedAt ?? line.apiKey.revokedAt } })
      }
      case 'revocation': {
        const stored = readRevocation(await store.get(keyOf('revocation', line.jti)))
        const until = Math.max(line.until, stored, revokedUntil.get(line.jti) ?? 0)
        revokedUntil.set(line.jti, until)
        return entriesOf({ ...line, until })
      }
      case 'member':
        if (line.role === 'owner')
          owners.set(line.organizationId, (owners.get(line.organizationId) ?? new Set()).add(line.userId))
        break
      case 'organization':
        organizations.push(line.organization.organizationId)
        loaded.add(`organization ${line.organization.organizationId}`)
        break
      case 'namespace':
        loaded.add(`namespace ${line.namespace.namespace}`)
        await requireGone(line.namespace.namespace)
        requireSameOwner(line.namespace, await replace(keyOf('namespace', line.namespace.namespace)))
        if ('organizationId' in line.namespace) {
          const { organizationId } = line.namespace
          named.set(`organization ${organizationId}`, keyOf('organization', organizationId))
        }
        break
      case 'server': {
        const { qualifiedName } = line.server
        const namespace = namespaceOf(qualifiedName)
        named.set(`namespace ${namespace}`, keyOf('namespace', namespace))
        requireOnce(`server ${qualifiedName}`)
        servers.add(qualifiedName)
        await count(serverEntry(line.server))
        break
      }
      case 'listing':
        requireOnce(`listing ${line.listing.qualifiedName}`)
        await count(listingEntry(line.listing))
        listed.add(line.listing.qualifiedName)
        break
      case 'connection':
        named.set(`namespace ${line.namespace}`, keyOf('namespace', line.namespace))
        return connectionEntries(line)
      case 'mock':
    }
    return entriesOf(line)
  }

  /** Refuses a namespace whose owner here differs: that owner's connections are in it, with headers and sign-ins. */
  function requireSameOwner(namespace: Namespace, stored: Uint8Array | undefined): void {
    if (stored === undefined) return
    const [is, was] = [ownerName(readNamespace(stored)), ownerName(namespace)]
    if (is === was) return
    throw new CommandError(
      `${file}: has the namespace ${namespace.namespace} of ${was}, and here it belongs to ${is}: ` +
        'delete it first, or take it out of the file',
    )
  }

  /** Its connections would go with those of the one that is being deleted. */
  async function requireGone(namespace: string): Promise<void> {
    if ((await store.get(keyOf('deletingNamespace', namespace))) === undefined) return
    throw new CommandError(
      `${file}: the namespace ${namespace} is being deleted: start the server, which removes its connections, and import again`,
    )
  }

  /** Counts what an entry of a server changes of its namespace's usage. */
  async function count(entry: Entry): Promise<void> {
    usages.remove(entry.key, await store.get(entry.key))
    usages.add(entry)
  }

  function requireOnce(what: string): void {
    if (loaded.has(what)) throw new CommandError(`${file}: has the ${what} twice`)
    loaded.add(what)
  }

  /** The stored record that the file replaces. Its index entries go: the new ones may be others. */
  async function replace(key: Key): Promise<Uint8Array | undefined> {
    const value = await store.get(key)
    if (value !== undefined) for (const one of indexKeysOf({ key, value })) deletes.add(one)
    return value
  }

  async function connectionEntries(line: Extract<ExportLine, { kind: 'connection' }>): Promise<readonly Entry[]> {
    const { namespace, connection, server } = line
    const { connectionId } = connection
    requireOnce(`connection ${namespace}/${connectionId}`)
    if (!namespaces.has(namespace)) versions.push(await checkOf(store, keyOf('connectionsVersion', namespace)))
    namespaces.add(namespace)
    const stored = await findConnection(store, namespace, connectionId)
    // An export contains no secrets, so a connection keeps the headers it has, but only if its URL is unchanged:
    // credentials for one server must never be sent to another.
    const isSamePlace = stored?.connection.mcpUrl === connection.mcpUrl
    const headers = isSamePlace ? stored?.privatePart.headers : undefined
    const privatePart: ConnectionPrivate = {
      ...(server !== undefined && { server }),
      ...(headers !== undefined && { headers }),
    }
    const edits = connectionEdits({ namespace, connectionId }, stored, { connection, privatePart })
    for (const key of edits.deletes) deletes.add(key)
    usages.change(namespace, edits.usage)
    return edits.puts
  }

  function* entries(onProgress: (stage: string, done: number) => void): Generator<Entry> {
    let done = 0
    for (const entry of puts.inOrder()) {
      done += 1
      onProgress('writing', done)
      yield entry
    }
    for (const namespace of namespaces) yield newConnectionsVersion(namespace)
    yield* newListingVersions(listed)
    yield newVersion(directoryVersionKey)
  }

  return {
    /** Reads the file. `secret`: of this instance. Throws CommandError for the first bad line. */
    async read(secret: string, onProgress: (stage: string, done: number) => void): Promise<Imported> {
      let [records, leftOut] = [0, 0]
      versions.push(await checkOf(store, directoryVersionKey))
      for (const { line, secret: exported } of linesOf(file)) {
        if (line.kind === 'apiKey' && exported !== secret) {
          leftOut += 1
          continue
        }
        records += 1
        onProgress('checking', records)
        for (const { key, value } of await comparedEntriesOf(line)) puts.add(key, value)
      }
      return { records, leftOut }
    },

    /**
     * Throws CommandError for a referenced organization or namespace that is neither in the file nor in the store, for a
     * server without its listing, and for an organization of others.
     */
    async requireNamed(): Promise<void> {
      for (const name of servers) {
        if (!listed.has(name)) throw new CommandError(`${file}: has the server ${name}, and not its listing`)
      }
      for (const organizationId of organizations) {
        if (!(await belongsToOthers(store, organizationId, owners.get(organizationId) ?? new Set()))) continue
        throw new CommandError(
          `${file}: has the organization ${organizationId}, which belongs to others here: delete it first`,
        )
      }
      for (const [what, key] of named) {
        if (!loaded.has(what) && (await store.get(key)) === undefined) {
          throw new CommandError(`${file}: names the ${what}, which is neither in the file nor in the store`)
        }
      }
    },

    /**
     * The write. Its checks are the versions of all parts that the file was compared with, so it conflicts if any of
     * them has changed since.
     */
    write: (onProgress: (stage: string, done: number) => void): Write => ({
      checks: [nothingStaged, ...versions],
      counts: usages.counts(),
      deletes: deletes.keys(),
      puts: entries(onProgress),
    }),
  }
}
