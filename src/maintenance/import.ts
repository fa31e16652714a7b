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
 * Imports a file; durable when it resolves. `secret` identifies this instance (`ExportHead`). `folder`: where records
 * wait; left out: in memory. Throws CommandError, with `file:line` for a bad line; then nothing was written.
 */
export async function importFile(
  store: Store,
  file: string,
  secret: string,
  onProgress: (stage: string, done: number) => void,
  folder?: string,
): Promise<Imported> {
  using plan = new ImportPlan(store, file, secret, folder)
  await plan.read(onProgress)
  await plan.requireNamed()
  const committed = await store.load(plan.write(onProgress))
  if (!committed.ok) throw new CommandError('another process wrote to the store, so nothing was imported: try again')
  return { records: plan.records, leftOut: plan.leftOut }
}

/** The plan of one import. Call `read`, `requireNamed` and `write`, in this order. */
class ImportPlan implements Disposable {
  records = 0
  /** API keys not imported: their hashes are keyed with another instance's secret. */
  leftOut = 0
  readonly #store: Store
  readonly #file: string
  readonly #secret: string
  readonly #puts: Spool
  /** Keys of replaced connections and index entries. */
  readonly #deletes: Spool
  /** Organizations and namespaces that records refer to, by their name in messages. */
  readonly #named = new Map<string, Key>()
  /**
   * Records that the file itself contains, by the same names. Of connections and servers it reports duplicates: each
   * would be counted twice in the usage.
   */
  readonly #loaded = new Set<string>()
  /** The ids of organizations in the file, and their owners there. */
  readonly #organizations: string[] = []
  readonly #owners = new Map<string, Set<string>>()
  /**
   * The end of each revocation in the file, in Unix seconds, or the store's if that is later: an import never shortens
   * one.
   */
  readonly #revokedUntil = new Map<string, number>()
  /** The servers in the file, and those whose listings are in it: import refuses a server without its listing. */
  readonly #servers = new Set<string>()
  readonly #listed = new Set<string>()
  readonly #usages = createUsages()
  /** The namespaces of connections. */
  readonly #namespaces = new Set<string>()
  /** Of all parts that the file is compared with, each read before anything of its part. */
  readonly #versions: Check[] = []

  constructor(store: Store, file: string, secret: string, folder: string | undefined) {
    this.#store = store
    this.#file = file
    this.#secret = secret
    this.#puts = new Spool(folder)
    this.#deletes = new Spool(folder)
  }

  [Symbol.dispose](): void {
    this.#puts[Symbol.dispose]()
    this.#deletes[Symbol.dispose]()
  }

  /** Reads the file. Throws CommandError for the first bad line. */
  async read(onProgress: (stage: string, done: number) => void): Promise<void> {
    this.#versions.push(await checkOf(this.#store, directoryVersionKey))
    for (const { line, secret } of linesOf(this.#file)) {
      if (line.kind === 'apiKey' && secret !== this.#secret) {
        this.leftOut += 1
        continue
      }
      this.records += 1
      onProgress('checking', this.records)
      for (const { key, value } of await this.#entriesOf(line)) this.#puts.add(key, value)
    }
  }

  /**
   * Throws CommandError for a referenced organization or namespace that is neither in the file nor in the store, for a
   * server without its listing, and for an organization of others.
   */
  async requireNamed(): Promise<void> {
    for (const name of this.#servers) {
      if (!this.#listed.has(name)) throw new CommandError(`${this.#file}: has the server ${name}, and not its listing`)
    }
    for (const organizationId of this.#organizations) {
      if (!(await belongsToOthers(this.#store, organizationId, this.#owners.get(organizationId) ?? new Set()))) continue
      throw new CommandError(
        `${this.#file}: has the organization ${organizationId}, which belongs to others here: delete it first`,
      )
    }
    for (const [what, key] of this.#named) {
      if (!this.#loaded.has(what) && (await this.#store.get(key)) === undefined) {
        throw new CommandError(`${this.#file}: names the ${what}, which is neither in the file nor in the store`)
      }
    }
  }

  /**
   * The write. Its checks are the versions of all parts that the file was compared with, so it conflicts if any of them
   * has changed since.
   */
  write(onProgress: (stage: string, done: number) => void): Write {
    return {
      checks: [nothingStaged, ...this.#versions],
      counts: this.#usages.counts(),
      deletes: this.#deletes.keys(),
      puts: this.#entries(onProgress),
    }
  }

  /** The entries of a line, once it was compared with the store. */
  async #entriesOf(line: ExportLine): Promise<readonly Entry[]> {
    switch (line.kind) {
      case 'apiKey': {
        const stored = await this.#replace(keyOf('apiKey', line.apiKey.keyId))
        const revokedAt = stored === undefined ? null : readApiKey(stored).revokedAt
        // An older export must not reactivate it.
        return entriesOf({ ...line, apiKey: { ...line.apiKey, revokedAt: revokedAt ?? line.apiKey.revokedAt } })
      }
      case 'revocation': {
        const stored = readRevocation(await this.#store.get(keyOf('revocation', line.jti)))
        const until = Math.max(line.until, stored, this.#revokedUntil.get(line.jti) ?? 0)
        this.#revokedUntil.set(line.jti, until)
        return entriesOf({ ...line, until })
      }
      case 'member':
        if (line.role === 'owner')
          this.#owners.set(line.organizationId, (this.#owners.get(line.organizationId) ?? new Set()).add(line.userId))
        break
      case 'organization':
        this.#organizations.push(line.organization.organizationId)
        this.#loaded.add(`organization ${line.organization.organizationId}`)
        break
      case 'namespace':
        this.#loaded.add(`namespace ${line.namespace.namespace}`)
        await this.#requireGone(line.namespace.namespace)
        this.#requireSameOwner(line.namespace, await this.#replace(keyOf('namespace', line.namespace.namespace)))
        if ('organizationId' in line.namespace) {
          const { organizationId } = line.namespace
          this.#named.set(`organization ${organizationId}`, keyOf('organization', organizationId))
        }
        break
      case 'server': {
        const { qualifiedName } = line.server
        const namespace = namespaceOf(qualifiedName)
        this.#named.set(`namespace ${namespace}`, keyOf('namespace', namespace))
        this.#requireOnce(`server ${qualifiedName}`)
        this.#servers.add(qualifiedName)
        await this.#count(serverEntry(line.server))
        break
      }
      case 'listing':
        this.#requireOnce(`listing ${line.listing.qualifiedName}`)
        await this.#count(listingEntry(line.listing))
        this.#listed.add(line.listing.qualifiedName)
        break
      case 'connection':
        this.#named.set(`namespace ${line.namespace}`, keyOf('namespace', line.namespace))
        return this.#connectionEntries(line)
      case 'mock':
    }
    return entriesOf(line)
  }

  /** Refuses a namespace whose owner here differs: that owner's connections are in it, with headers and sign-ins. */
  #requireSameOwner(namespace: Namespace, stored: Uint8Array | undefined): void {
    if (stored === undefined) return
    const [is, was] = [ownerName(readNamespace(stored)), ownerName(namespace)]
    if (is === was) return
    throw new CommandError(
      `${this.#file}: has the namespace ${namespace.namespace} of ${was}, and here it belongs to ${is}: ` +
        'delete it first, or take it out of the file',
    )
  }

  /** Its connections would go with those of the one that is being deleted. */
  async #requireGone(namespace: string): Promise<void> {
    if ((await this.#store.get(keyOf('deletingNamespace', namespace))) === undefined) return
    throw new CommandError(
      `${this.#file}: the namespace ${namespace} is being deleted: start the server, which removes its connections, and import again`,
    )
  }

  /** Counts what an entry of a server changes of its namespace's usage. */
  async #count(entry: Entry): Promise<void> {
    this.#usages.remove(entry.key, await this.#store.get(entry.key))
    this.#usages.add(entry)
  }

  #requireOnce(what: string): void {
    if (this.#loaded.has(what)) throw new CommandError(`${this.#file}: has the ${what} twice`)
    this.#loaded.add(what)
  }

  /** The stored record that the file replaces. Its index entries go: the new ones may be others. */
  async #replace(key: Key): Promise<Uint8Array | undefined> {
    const value = await this.#store.get(key)
    if (value !== undefined) for (const one of indexKeysOf({ key, value })) this.#deletes.add(one)
    return value
  }

  async #connectionEntries(line: Extract<ExportLine, { kind: 'connection' }>): Promise<readonly Entry[]> {
    const { namespace, connection, server } = line
    const { connectionId } = connection
    this.#requireOnce(`connection ${namespace}/${connectionId}`)
    if (!this.#namespaces.has(namespace))
      this.#versions.push(await checkOf(this.#store, keyOf('connectionsVersion', namespace)))
    this.#namespaces.add(namespace)
    const stored = await findConnection(this.#store, namespace, connectionId)
    // An export contains no secrets, so a connection keeps the headers it has, but only if its URL is unchanged:
    // credentials for one server must never be sent to another.
    const isSamePlace = stored?.connection.mcpUrl === connection.mcpUrl
    const headers = isSamePlace ? stored?.privatePart.headers : undefined
    const privatePart: ConnectionPrivate = {
      ...(server !== undefined && { server }),
      ...(headers !== undefined && { headers }),
    }
    const { puts, deletes, usage } = connectionEdits({ namespace, connectionId }, stored, { connection, privatePart })
    for (const key of deletes) this.#deletes.add(key)
    this.#usages.change(namespace, usage)
    return puts
  }

  *#entries(onProgress: (stage: string, done: number) => void): Generator<Entry> {
    let done = 0
    for (const entry of this.#puts.inOrder()) {
      done += 1
      onProgress('writing', done)
      yield entry
    }
    for (const namespace of this.#namespaces) yield newConnectionsVersion(namespace)
    yield* newListingVersions(this.#listed)
    yield newVersion(directoryVersionKey)
  }
}
