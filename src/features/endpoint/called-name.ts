/** Finds what a client's name or URI means: a connection, and the connection's own name for it (contract, 20.2). */

import { isFresh } from '../../auth/authorizer.ts'
import { PlatformError } from '../../errors.ts'
import { allowanceOf } from '../../fairness/allowance.ts'
import type { Work } from '../../fairness/turns.ts'
import { rpcCodes } from '../../model/mcp.ts'
import { reading } from '../../schema/json.ts'
import type { ListKind } from '../gateway/tool-requests.ts'
import type { Target } from './endpoint-call.ts'
import type { EndpointDeps } from './endpoint-deps.ts'
import { type EndpointRequest, rpcError } from './endpoint-request.ts'
import { joining, type Shown, withLists } from './joined-lists.ts'
import { definitionOf } from './kept-record.ts'
import { nameLengths, readCalledName } from './listed-names.ts'
import { readListedUri } from './listed-uris.ts'
import type { ListedDefinition } from './rendered-offer.ts'

type Path = NonNullable<Target['named']>['path']

/** The tool or prompt of a name; undefined if the caller sees none, an answer if several have it. Throws 400, 429. */
export async function targetOfName(
  deps: EndpointDeps,
  asked: EndpointRequest,
  { kind, name, path }: { readonly kind: 'tools' | 'prompts'; readonly name: string; readonly path: Path },
): Promise<Target | Response | undefined> {
  const called = readCalledName(name)
  if (called.kind === 'joined') return targetIn(deps, asked, called.connectionId, { kind, own: called.own, path })
  // Pages of MCP Apps call tools by their own names.
  const isBare = called.kind === 'bare'
  if (isBare && asked.view?.bareNames !== true) return undefined
  const { context, namespace, options } = asked
  const lists = { namespace: namespace.namespace, called: isBare ? undefined : name }
  // Servers that were never seen are waited for only for a name that no known list has.
  for (const mayAsk of isBare ? [true] : [false, true]) {
    const found = await withLists(deps, context, { ...lists, mayAsk }, async (shownAt) => {
      for (const length of isBare ? [options.length] : nameLengths) {
        const shown = await allowanceOf(context.request).run(meant(await shownAt(length), kind, name, isBare))
        if (shown.length > 0) return shown
      }
      return []
    })
    if (found.length > 1) {
      const names = found.map((one) => one.listed).join(', ')
      const text = `Ambiguous ${kind === 'tools' ? 'tool' : 'prompt'}: ${name}. Use one of: ${names}`
      return rpcError(asked, rpcCodes.invalidParams, text)
    }
    const [only] = found
    if (only !== undefined) return targetIn(deps, asked, only.connectionId, { kind, own: only.own, path })
  }
  return undefined
}

/** The definitions that a client means by a name: by the servers' own names if `isBare`. */
function* meant(shown: readonly Shown[], kind: ListKind, name: string, isBare: boolean): Work<ListedDefinition[]> {
  const { definitions } = yield* joining(shown, kind)
  yield definitions.length
  return definitions.filter((one) => (isBare ? one.own : one.listed) === name)
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
  const { context } = asked
  const { namespace } = asked.namespace
  try {
    const ref = { namespace, connectionId }
    const before = await deps.authorizer.requireConnection(context, 'execute', ref)
    const first = () => deps.kept.use(context, [ref], true, ([listed]) => listed?.kept)
    // Its lists say which revisions the server speaks, and the connection says so when they are kept.
    const { era = 'handshake' } = before.stored.privatePart.list ?? (await first()) ?? {}
    // Its server may have been waited for.
    const connection = isFresh(deps, context)
      ? before
      : await deps.authorizer.requireConnection(context, 'execute', ref)
    const definition = async () => {
      const offer = (await deps.kept.offerOf(context, connection)) ?? (await first())
      const found = offer?.lists.tools.find((one) => one.own === own)
      if (found === undefined) return undefined
      const work = reading(found.rest.length, () => definitionOf('tools', found))
      return allowanceOf(context.request).parse(found.rest.length, work)
    }
    return { connection, era, named: { path, own }, ...(kind === 'tools' && { definition }) }
  } catch (thrown) {
    if (thrown instanceof PlatformError && thrown.code === 'not_found') return undefined
    throw thrown
  }
}
