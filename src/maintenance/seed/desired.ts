/** The entries that fixtures bring, apart from connections: records of the directory with their index entries. */

import { apiKeyDigest, findApiKey, fixtureKeyId } from '../../auth/api-key.ts'
import { CommandError } from '../../errors.ts'
import {
  type ApiKey,
  type Namespace,
  namespaceSettings,
  type Organization,
  ownerName,
} from '../../model/organization.ts'
import { isSamePlace, listingOf, noExtras, type ServerDetail } from '../../model/server.ts'
import { viewOf } from '../../model/view.ts'
import { equalBytes } from '../../storage/bytes.ts'
import {
  apiKeyEntries,
  listingEntry,
  memberEntry,
  mockEntry,
  namespaceEntry,
  organizationEntry,
  readListing,
  readNamespace,
  readServer,
  readView,
  serverEntry,
  viewEntry,
  withIndex,
} from '../../storage/directory-records.ts'
import { madeAfterEnd } from '../../storage/ended-namespaces.ts'
import { everyKey } from '../../storage/every-entry.ts'
import { keyOf, latin1Key, listingKey, placeKey, prefixOf, serversIn } from '../../storage/keys.ts'
import type { Entry, Store } from '../../storage/store.ts'
import { belongsToOthers } from '../organization-owners.ts'
import type { Fixtures } from './read-fixtures.ts'

export interface DesiredOptions {
  /** The key for hashing API keys. */
  readonly pepper: Buffer
  /** `createdAt` of new records. */
  readonly now: Date
  /** Whether the fixtures that were loaded last brought the entry with this key (as `latin1Key` text). */
  readonly isFromFixture: (name: string) => boolean
  /** Whether no fixtures were loaded into the store before. */
  readonly isFirst: boolean
  /** See `handedOver`: such a namespace is a new one for its owner. */
  readonly handedOver: ReadonlySet<string>
}

/** The fixtures bring what was made over HTTP and is somebody else's, or what is being deleted over HTTP. */
export class FixtureConflict extends CommandError {}

/** All entries. Throws CommandError for an API key made at run time, and FixtureConflict (contract, 11.4). */
export async function desiredEntries(store: Store, fixtures: Fixtures, options: DesiredOptions): Promise<Entry[]> {
  const { now, pepper, isFromFixture, isFirst, handedOver } = options
  const wanted: Entry[] = []
  const place = (record: object) => fixtures.places.get(record) ?? ''
  const add = (entry: Entry) => wanted.push(...withIndex(entry))
  /** `record`: the part of a fixture that brings the entry. Over HTTP the entry is refused with its place. */
  const addAt = (record: object, entry: Entry) => {
    add(entry)
    wanted.push({ key: placeKey(entry.key), value: Buffer.from(place(record)) })
  }
  const madeAtRunTime = async (entry: Entry) =>
    isFromFixture(latin1Key(entry.key)) ? undefined : await store.get(entry.key)

  for (const organization of fixtures.organizations) {
    const { organizationId, name, members } = organization
    const entry = organizationEntry({ organizationId, name })
    if ((await madeAtRunTime(entry)) !== undefined) await requireSharedOwner(store, organization, place(organization))
    addAt(organization, entry)
    for (const { userId, role } of members) {
      const member = memberEntry(organizationId, userId, role)
      // Made over HTTP and the same: it stays so, and does not go with the fixture. Where no fixture was loaded before,
      // it may have come with an import of what fixtures brought elsewhere.
      if (!isFirst && equalBytes(await madeAtRunTime(member), member.value)) continue
      addAt(organization, member)
    }
  }
  for (const namespace of fixtures.namespaces) {
    const stored = await store.get(keyOf('namespace', namespace.namespace))
    const before = stored === undefined ? undefined : readNamespace(stored)
    if (before === undefined) await requireGone(store, namespace.namespace, place(namespace))
    const least = handedOver.has(namespace.namespace) ? { createdAt: now.toISOString() } : before
    const made = { ...namespace, ...unsaid(namespace, least, now) } as Namespace
    const entry = namespaceEntry(await madeAfterEnd(store, made))
    if (before !== undefined && !isFromFixture(latin1Key(entry.key)))
      requireSameOwner(before, namespace, `${place(namespace)}: the namespace ${namespace.namespace} was`)
    const other = before && (await madeOverHttpIn(store, namespace.namespace, isFromFixture))
    if (before !== undefined && other !== undefined)
      requireSameOwner(before, namespace, `${place(namespace)}: a ${other} in ${namespace.namespace} was`)
    addAt(namespace, entry)
  }
  for (const view of fixtures.views) addAt(view, await desiredView(store, view, now))
  for (const server of fixtures.servers) {
    addAt(server, serverEntry(server))
    wanted.push(await desiredListing(store, server, now))
  }
  for (const [index, mock] of fixtures.mocks.entries()) add(mockEntry(String(index).padStart(6, '0'), mock))
  for (const apiKey of fixtures.apiKeys) {
    for (const entry of await keyEntries(store, apiKey, place(apiKey), { pepper, now })) add(entry)
  }
  return wanted
}

/** The kind of what was made over HTTP in a namespace, if anything was: it is not for another owner. */
export async function madeOverHttpIn(store: Store, namespace: string, isFromFixture: DesiredOptions['isFromFixture']) {
  const own = keyOf('server', namespace)
  if (!isFromFixture(latin1Key(own)) && (await store.get(own)) !== undefined) return 'server'
  const ranges = { connection: prefixOf('connection', namespace), view: prefixOf('view', namespace) }
  for (const [kind, prefix] of Object.entries({ ...ranges, server: serversIn(namespace) }))
    for await (const key of everyKey(store, prefix)) if (!isFromFixture(latin1Key(key))) return kind
  return undefined
}

async function desiredView(store: Store, view: Fixtures['views'][number], now: Date): Promise<Entry> {
  const { namespace, name, ...write } = view
  const stored = await store.get(keyOf('view', namespace, name))
  const before = stored === undefined ? undefined : readView(stored)
  const at = now.toISOString()
  const made = viewOf({ namespace, name }, write, before ?? { createdAt: at, updatedAt: at })
  // An unchanged one keeps its time, so that a reload changes nothing.
  const isSame = equalBytes(viewEntry(made).value, stored ?? null)
  return viewEntry(isSame ? made : { ...made, updatedAt: at })
}

/** The namespaces that get another owner. */
export async function handedOver(store: Store, { namespaces }: Pick<Fixtures, 'namespaces'>): Promise<Set<string>> {
  const given = new Set<string>()
  for (const wanted of namespaces) {
    const stored = await store.get(keyOf('namespace', wanted.namespace))
    if (stored !== undefined && ownerName(readNamespace(stored)) !== ownerName(wanted)) given.add(wanted.namespace)
  }
  return given
}

/** Fields that are left out stay as stored. `createdAt` never moves back: all before it belongs to a former owner. */
function unsaid(wanted: Namespace, before: Partial<Namespace> | undefined, now: Date): Partial<Namespace> {
  const { createdAt: since } = before ?? {}
  const stated = wanted.createdAt ?? (before === undefined ? now.toISOString() : since)
  const time = since !== undefined && stated !== undefined && Date.parse(since) > Date.parse(stated) ? since : stated
  const settings = namespaceSettings.flatMap((name) => {
    const setting = wanted[name] ?? before?.[name]
    return setting === undefined ? [] : [[name, setting] as const]
  })
  return { ...(time !== undefined && { createdAt: time }), ...Object.fromEntries(settings) }
}

async function desiredListing(store: Store, server: ServerDetail, now: Date): Promise<Entry> {
  const [detail, stored] = await store.getMany([
    keyOf('server', server.qualifiedName),
    listingKey(server.qualifiedName),
  ])
  const before = stored === undefined ? undefined : readListing(stored)
  const time = before === undefined ? now.toISOString() : before.createdAt
  const { verified, unlisted } = before ?? noExtras
  const isMoved = detail !== undefined && !isSamePlace(readServer(detail), server)
  const kept = { ...(time !== undefined && { createdAt: time }), verified: verified && !isMoved, unlisted }
  return listingEntry(listingOf(server, { ...noExtras, ...kept }))
}

/** Its connections would go with those of the one that is being deleted. */
async function requireGone(store: Store, namespace: string, place: string): Promise<void> {
  if ((await store.get(keyOf('deletingNamespace', namespace))) === undefined) return
  throw new FixtureConflict(
    `${place}: the namespace ${namespace} is being deleted: load the fixtures again when its connections are gone`,
  )
}

/** `what` was made over HTTP. */
function requireSameOwner(stored: Namespace, wanted: Namespace, what: string): void {
  const [is, will] = [ownerName(stored), ownerName(wanted)]
  if (is === will) return
  throw new FixtureConflict(
    `${what} made over HTTP and belongs to ${is}: give the namespace that owner, or another name`,
  )
}

async function requireSharedOwner(
  store: Store,
  { organizationId, members }: Organization & { readonly members: readonly { userId: string; role: string }[] },
  place: string,
): Promise<void> {
  const owners = new Set(members.flatMap(({ userId, role }) => (role === 'owner' ? [userId] : [])))
  if (!(await belongsToOthers(store, organizationId, owners))) return
  throw new FixtureConflict(
    `${place}: the organization ${organizationId} was made over HTTP by others: ` +
      'name one of its owners, or choose another id',
  )
}

async function keyEntries(
  store: Store,
  apiKey: Fixtures['apiKeys'][number],
  place: string,
  { pepper, now }: Pick<DesiredOptions, 'pepper' | 'now'>,
): Promise<readonly Entry[]> {
  const { key, userId, operator = false } = apiKey
  const digest = apiKeyDigest(pepper, key)
  const keyId = fixtureKeyId(digest, userId)
  const known = await findApiKey(store, digest)
  if (known !== undefined && known.keyId !== fixtureKeyId(digest, known.userId))
    throw new CommandError(
      `${place}: this API key already exists (${known.keyId}, made with \`keys create\`): use another key`,
    )
  const record: ApiKey = {
    keyId,
    name: apiKey.name ?? null,
    userId,
    operator,
    createdAt: known?.keyId === keyId ? known.createdAt : now.toISOString(),
    // A revoked key stays revoked, even if its fixture is loaded again.
    revokedAt: known?.revokedAt ?? null,
  }
  return apiKeyEntries(record, digest)
}
