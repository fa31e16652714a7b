/**
 * Finds what a client's name, URI or reference means: one connection, and the connection's own name (contract, 20.2).
 */

import { PlatformError } from '../../errors.ts'
import type { ListKind } from '../gateway/tool-requests.ts'
import { findConnectionOf, type Target } from './endpoint-call.ts'
import type { EndpointDeps } from './endpoint-deps.ts'
import type { EndpointRequest } from './endpoint-request.ts'
import { joinLists, shownConnections } from './joined-lists.ts'
import { nameLengths, readCalledName } from './listed-names.ts'
import { readListedUri } from './listed-uris.ts'
import type { ListedDefinition } from './rendered-offer.ts'

type Path = NonNullable<Target['named']>['path']

/** The tool or prompt of a name; undefined if the caller sees none. Throws 400, 429. */
export async function targetOfName(
  deps: EndpointDeps,
  asked: EndpointRequest,
  { kind, name, path }: { readonly kind: 'tools' | 'prompts'; readonly name: string; readonly path: Path },
): Promise<Target | undefined> {
  const called = readCalledName(name)
  if (called.kind === 'bare') return undefined
  if (called.kind === 'joined') return targetIn(deps, asked, called.connectionId, { kind, own: called.own, path })
  for (const length of nameLengths) {
    const found = (await listedAs(deps, asked, kind, length)).get(name)
    if (found !== undefined) return targetIn(deps, asked, found.connectionId, { kind, own: found.own, path })
  }
  return undefined
}

/** The resource of a URI; undefined if the caller sees no such connection. */
export async function targetOfUri(
  deps: EndpointDeps,
  asked: EndpointRequest,
  { uri, path }: { readonly uri: string; readonly path: Path },
): Promise<Target | undefined> {
  const read = readListedUri(uri)
  return read && targetIn(deps, asked, read.connectionId, { kind: 'resources', own: read.uri, path })
}

async function targetIn(
  deps: EndpointDeps,
  asked: EndpointRequest,
  connectionId: string,
  { kind, own, path }: { readonly kind: ListKind; readonly own: string; readonly path: Path },
): Promise<Target | undefined> {
  const { context, namespace } = asked
  try {
    const connection = await findConnectionOf(deps, asked, { namespace, connectionId })
    const [listed] = await deps.kept.of(context, [{ namespace, connectionId }], false)
    const definition = kind === 'tools' ? listed?.offer?.tools.find(({ name }) => name === own) : undefined
    return { connection, era: listed?.offer?.era ?? 'handshake', named: { path, own }, definition }
  } catch (thrown) {
    if (thrown instanceof PlatformError && thrown.code === 'not_found') return undefined
    throw thrown
  }
}

/** The definitions that the caller's list shows, by listed name. */
async function listedAs(
  { kept, store }: EndpointDeps,
  { context, namespace }: EndpointRequest,
  kind: 'tools' | 'prompts',
  length: (typeof nameLengths)[number],
): Promise<ReadonlyMap<string, ListedDefinition & { readonly connectionId: string }>> {
  const shown = await shownConnections(kept, store, context, { namespace, length, mayAsk: true })
  return new Map(joinLists(shown, kind).definitions.map((one) => [one.listed, one]))
}
