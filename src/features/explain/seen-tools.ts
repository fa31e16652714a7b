/** The connections that a caller sees, with tools as far as they are known without asking (contract, 21.4). */

import { type AuthorizedConnection, accessTo, type RequestContext } from '../../auth/authorizer.ts'
import { serverJsonOf } from '../../auth/stored-servers.ts'
import type { Clock } from '../../clock.ts'
import { allowanceOf } from '../../fairness/allowance.ts'
import type { Work } from '../../fairness/turns.ts'
import type { ConnectionRef } from '../../model/connection.ts'
import type { Block } from '../../policy/block.ts'
import { decideOnConnection } from '../../policy/decide.ts'
import { couldCall, toolRules } from '../../policy/tools.ts'
import { readingServer } from '../../storage/directory-records.ts'
import { everySeenBatch } from '../endpoint/seen-connections.ts'
import type { ExplainDeps } from './explain-deps.ts'

/** Contract 21.1: connections that one request about a policy, such as `POST /tokens/lint`, examines. Past it: the answer says that it is not complete. */
const examinedConnectionsMax = 1000
/** Contract 21.1: tools that one request about a policy examines. Past it: as for connections. */
const examinedToolsMax = 2000
/** Contract 21.1: milliseconds that one request about a policy may take to examine connections and tools. Past it: as for connections. */
const examinedMsMax = 1000
/** Ours: namespaces that one request about a policy examines; for each of them, postern reads the store. Past it: as for connections. */
const examinedNamespacesMax = 1000
/** Connections whose tools are read at once: few, as each may have a list of a megabyte. */
const readAtOnce = 20

export interface SeenConnection extends AuthorizedConnection {
  /** The names of its tools; undefined if none are known. */
  readonly tools: readonly string[] | undefined
}

/** The part of everything that one question has examined. */
export class Examined {
  connections = 0
  tools = 0
  /** Whether nothing was left out so far. */
  isComplete = true
  /** The tools of servers that were read already: many connections may have one server. */
  readonly servers = new Map<string, Promise<readonly string[] | undefined>>()
  readonly #clock: Clock
  readonly #until: number

  constructor(clock: Clock) {
    this.#clock = clock
    this.#until = clock.monotonic() + examinedMsMax
  }

  /** Whether there is time left; if not, the question is not complete. */
  hasTime(): boolean {
    const hasTime = this.#clock.monotonic() <= this.#until
    this.isComplete &&= hasTime
    return hasTime
  }

  /** Whether the question may examine another connection; if not, it is not complete. */
  hasRoom(): boolean {
    const hasRoom = this.connections < examinedConnectionsMax && this.tools < examinedToolsMax
    this.isComplete &&= hasRoom
    return this.hasTime() && hasRoom
  }

  /** Counts a connection, without the tools that are too many. */
  take(seen: SeenConnection): SeenConnection {
    const tools = seen.tools?.slice(0, examinedToolsMax - this.tools)
    this.connections += 1
    this.tools += tools?.length ?? 0
    this.isComplete &&= tools?.length === seen.tools?.length
    return { ...seen, tools }
  }
}

/** Milliseconds that a tool takes of its owner's time, with what it leaves behind to be collected. */
const toolMs = 0.006

interface Wanted {
  readonly namespace?: string | undefined
  readonly from?: ConnectionRef | undefined
  /** Only connections that these leave. */
  readonly within?: readonly Block[]
}

/**
 * The connections that the caller may read or call, in the order of namespace and id, beginning at `from`, until
 * `examined` says that it is enough. Of tools, the caller sees those that it could call. Rejects as `Slices.next`.
 */
export async function* everySeen(
  deps: ExplainDeps,
  context: RequestContext,
  examined: Examined,
  { namespace, from, within = [] }: Wanted,
): AsyncGenerator<SeenConnection> {
  const allowance = allowanceOf(context.request)
  const slices = allowance.slices()
  const wanted = { namespace, from, most: readAtOnce, namespacesMax: examinedNamespacesMax }
  const { caller } = context
  const narrowed = { ...context, caller: { ...caller, blocks: [...caller.blocks, ...within] } }
  for await (const refs of everySeenBatch(deps.store, narrowed, wanted)) {
    if (refs === 'more') examined.isComplete = false
    if (refs === 'more' || !isFirstOr(examined)) return
    for (const seen of await withTools(deps, context, refs, examined)) {
      if (slices.isOver) await slices.next()
      if (!isFirstOr(examined)) return
      const taken = examined.take(seen)
      allowance.spend((taken.tools?.length ?? 0) * toolMs)
      yield taken
    }
  }
}

/** One connection is always examined, however late: so that the next page is another one. */
const isFirstOr = (examined: Examined) => examined.connections === 0 || examined.hasRoom()

/**
 * The connections that still exist, with the tools that the caller could call: of a mock's server, else of the accepted
 * or last complete list, else of the registered server.
 */
export async function withTools(
  deps: ExplainDeps,
  context: RequestContext,
  refs: readonly ConnectionRef[],
  examined = new Examined(deps.clock),
): Promise<SeenConnection[]> {
  const listed = await deps.kept.use(context, refs, false, (all) =>
    all.map(({ kept, problem: _, ...one }) => ({ ...one, tools: kept?.lists.tools.map(({ own }) => own) })),
  )
  const seen: SeenConnection[] = []
  for (const found of listed) {
    const { connection, privatePart } = found.stored
    const own = found.tools ?? (await acceptedTools(deps, context, found))
    const isMock = connection.mock?.enabled === true
    const { server } = own === undefined || isMock ? privatePart : {}
    const { servers } = examined
    const ofServer =
      server === undefined ? undefined : servers.getOrInsertComputed(server, () => toolsOf(context, server))
    const tools = isMock ? ((await ofServer) ?? own) : (own ?? (await ofServer))
    const work = tools && callable(context, found, tools, examined)
    seen.push({ ...found, tools: work && (await allowanceOf(context.request).run(work)) })
  }
  return seen
}

/** The tools that the connection's pins have: a list that only others than the platform read is kept nowhere else. */
async function acceptedTools({ pins }: ExplainDeps, context: RequestContext, connection: AuthorizedConnection) {
  if ((await pins.settingOf(context, connection)) === 'off') return undefined
  const { tools } = await pins.of(context, connection)
  return tools && [...tools].flatMap(([name, { accepted, present }]) => (accepted && present ? [name] : []))
}

async function toolsOf({ directory, request }: RequestContext, server: string) {
  const bytes = await serverJsonOf(directory, request, server) // 429
  if (bytes === undefined) return undefined
  const { tools } = await allowanceOf(request).parse(bytes.length, readingServer(bytes)) // 429
  return tools?.map(({ name }) => name)
}

/** The tools that the caller could call; undefined if it may call nothing there. */
function* callable(
  { caller: { blocks } }: RequestContext,
  connection: AuthorizedConnection,
  tools: readonly string[],
  examined: Examined,
): Work<readonly string[] | undefined> {
  if (blocks.length === 0) return tools
  if (!decideOnConnection(blocks, accessTo(connection, connection.stored, 'execute')).allowed) return undefined
  const rules = toolRules(blocks)
  const found: string[] = []
  for (const tool of tools) if (examined.hasTime() && (yield* couldCall(rules, tool))) found.push(tool)
  return found
}
