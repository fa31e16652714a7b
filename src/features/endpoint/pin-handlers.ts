/** `/connect/{namespace}/{connectionId}/.pins`: shows and accepts definitions (contract, 20.12). */

import { auditedCaller } from '../../auth/authenticate.ts'
import type { AuthorizedConnection, RequestContext } from '../../auth/authorizer.ts'
import type { SharedParts } from '../../auth/shared-parts.ts'
import { whileAllowed } from '../../auth/while-allowed.ts'
import { conflict } from '../../errors.ts'
import { allowanceOf } from '../../fairness/allowance.ts'
import type { Work } from '../../fairness/turns.ts'
import { readOptionalBody } from '../../http/body.ts'
import { handlersOf } from '../../http/handler.ts'
import { refuseQuery } from '../../http/query.ts'
import { privateJson, wholeResponse } from '../../http/respond.ts'
import { PinAcceptance, type PinList } from '../../model/pins.ts'
import { validatorOf } from '../../schema/check.ts'
import { reading } from '../../schema/json.ts'
import { DifferenceRoom, differencesMax, differencesOf } from '../pins/pin-differences.ts'
import { findingsIn, isTellingName } from '../pins/pin-findings.ts'
import { type Pin, type PinRecord, shownHash, stateOf, withAccepted } from '../pins/pin-record.ts'
import { hashOf } from '../pins/pinned-definitions.ts'
import { shownText, textsIn } from '../pins/shown-text.ts'
import type { KeptLists, KeptListsDeps } from './kept-lists.ts'
import { seenConnections } from './seen-connections.ts'

interface PinHandlerDeps extends KeptListsDeps, Pick<SharedParts, 'writes' | 'audit'> {
  readonly kept: KeptLists
}

const shape = validatorOf(PinAcceptance)

/** Tools that one line of the audit log names. Past it: the others are counted. */
const auditedToolsMax = 50

export const pinHandlers = handlersOf({ listPins, acceptPins })

async function listPins(deps: PinHandlerDeps, request: Request): Promise<Response> {
  const context = await deps.authorizer.authenticate(request) // 401, 429
  await deps.authorizer.requireConnection(context, 'read') // 404, 403
  refuseQuery(request.url) // 400
  return pinsResponse(deps, context, 'read') // 401, 404, 403, 429
}

async function acceptPins(deps: PinHandlerDeps, request: Request): Promise<Response> {
  const { authorizer, writes, pins, audit } = deps
  const first = await writes.authenticate(request) // 401, 429
  await authorizer.requireConnection(first, 'write') // 404, 403
  refuseQuery(request.url) // 400
  const { accept = {}, instructions } = await readOptionalBody(request, shape) // 400
  const mayAccept = async () => {
    const context = await authorizer.authenticate(request, true) // 401
    return { context, connection: await authorizer.requireConnection(context, 'write') } // 404, 403
  }
  const { context, connection } = await mayAccept()
  let isAccepted = false
  const accepted = function* (before: PinRecord) {
    const tools = yield* byOwnName(before, accept)
    const after = tools && withAccepted(before, { tools, instructions })
    isAccepted = after !== undefined
    return after && { pins: after, changes: [] }
  }
  const { tools } = await pins.change(context, connection, accepted, mayAccept) // 401, 404, 403, 429, 503
  if (!isAccepted)
    throw conflict('A definition has changed since this hash: read .pins again (`postern connection pins`)') // 409
  const names = Object.keys(accept)
  const { namespace, connectionId } = connection
  if (names.length > 0 || instructions !== undefined)
    await audit.recordDone('pin.accepted', {
      ...{ ...auditedCaller(context.caller), namespace, connectionId },
      ...{ tools: names.slice(0, auditedToolsMax), count: names.length, instructions: instructions !== undefined },
    })
  // The kept lists may be older than what was accepted, which the next list is to show.
  const hashes = new Set(Object.values(accept))
  const shown = [...(tools ?? [])].flatMap(([name, { present }]) => (hashes.has(present ?? '') ? [name] : []))
  await deps.kept.readWithout(context, connection, { tools: shown, instructions })
  return pinsResponse(deps, context, 'write') // 401, 404, 403, 429
}

/** The hashes by the names that the server gives; undefined if a name is unknown. Names are given as they are shown. */
function* byOwnName({ tools }: PinRecord, accept: Readonly<Record<string, string>>) {
  const own = new Map<string, string>()
  const shown = new Map<string, string>()
  for (const name of tools?.keys() ?? []) {
    yield toolCost + nameCost * name.length
    shown.set(shownText(name), name)
  }
  for (const [name, hash] of Object.entries(accept)) {
    const known = tools?.has(name) === true ? name : shown.get(name)
    if (known === undefined) return undefined
    own.set(known, hash)
  }
  return own
}

/** Answers with the pins, if the caller may still perform the operation then. Throws 401, 404, 403, 429. */
async function pinsResponse(
  deps: PinHandlerDeps,
  context: RequestContext,
  operation: 'read' | 'write',
): Promise<Response> {
  const list = await whileAllowed(deps, context, async (now) => {
    const connection = await deps.authorizer.requireConnection(now, operation)
    const record = await deps.pins.recordOf(now, connection)
    const setting = await deps.pins.settingOf(now, connection)
    const others = await otherTools(deps, now, connection)
    return allowanceOf(now.request).run(listing(record, others, setting))
  })
  return wholeResponse(context.request, JSON.stringify(list), { headers: privateJson })
}

/** Cost of a tool beside that of its definitions, in the unit of `sliceCost`. */
const toolCost = 50
/** Cost of a character of its name, which may be invisible, and is written out then. */
const nameCost = 5

/** The pins as people should see them. `others`: telling names of the tools of other connections. */
function* listing(record: PinRecord, others: ReadonlySet<string>, pins: PinList['pins']): Work<PinList> {
  const room = new DifferenceRoom()
  const textOf = (hash: string | null) => (hash === null ? undefined : record.texts.get(hash))

  /** `parse`: makes the value of a text that is compared. */
  function* shown(pin: Pin, parse: (text: string) => unknown) {
    function* parsing(text: string | undefined): Work<unknown> {
      return text === undefined ? undefined : yield* reading(text.length, () => parse(text))
    }
    const [before, after] = [textOf(pin.accepted), textOf(pin.present)]
    const accepted = yield* parsing(before)
    const present = after === before ? accepted : yield* parsing(after)
    const state = stateOf(pin)
    const isCompared = state === 'changed' && before !== undefined && after !== undefined
    const findings = yield* findingsIn(yield* textsIn(after === undefined ? accepted : present), others)
    const diff = isCompared ? yield* differencesOf(accepted, present, room) : undefined
    // People who accept a definition should know where they do not see all of it. Hashing costs as much as reading.
    yield (before?.length ?? 0) + (after?.length ?? 0)
    const areDifferencesCut = diff !== undefined && (diff.length >= differencesMax || room.isFull)
    const isTruncated =
      areDifferencesCut || !isWhole(pin.present, after) || (isCompared && !isWhole(pin.accepted, before))
    return {
      ...{ state, hash: shownHash(pin) ?? '', findings },
      ...(diff && { diff }),
      ...(isTruncated && { truncated: true as const }),
    }
  }

  const tools: PinList['tools'] = []
  for (const [name, pin] of record.tools ?? []) {
    yield toolCost + nameCost * name.length
    tools.push({ name: shownText(name), ...(yield* shown(pin, (text) => JSON.parse(text))) })
  }
  const { instructions } = record
  const isNone = instructions === undefined || shownHash(instructions) === null
  return { pins, tools, instructions: isNone ? null : yield* shown(instructions, (text) => text) }
}

/** Whether the kept text is all of the definition with this hash; null: there is none. */
function isWhole(hash: string | null, text: string | undefined): boolean {
  return hash === null || (text !== undefined && hashOf(text) === hash)
}

/** Telling names of the tools of other connections that the caller sees, as their servers and as postern list them. */
async function otherTools(
  { store, kept }: PinHandlerDeps,
  context: RequestContext,
  { namespace, connectionId }: AuthorizedConnection,
): Promise<ReadonlySet<string>> {
  const refs = (await seenConnections(store, context, namespace)) ?? []
  const others = refs.filter((ref) => ref.connectionId !== connectionId)
  return kept.use(context, others, false, (listed) => {
    const names = listed.flatMap(({ connectionId, kept }) =>
      (kept?.lists.tools ?? []).flatMap(({ own }) => [own, `${connectionId}__${own}`]),
    )
    return new Set(names.filter(isTellingName))
  })
}
