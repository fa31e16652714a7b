/** Kept lists compared with the pins of their connection (contract, 20.12). */

import type { AuthorizedConnection, RequestContext } from '../../auth/authorizer.ts'
import { allowanceOf } from '../../fairness/allowance.ts'
import type { ConnectionPins, Pin } from '../pins/pin-record.ts'
import { hashesByName, hashingDefinition, type SeenDefinition } from '../pins/pinned-definitions.ts'
import { isUsable, type Pins } from '../pins/pins.ts'
import { definitionOf, type Kept, type KeptDefinition, restOf } from './kept-record.ts'

/** Compares lists that were read, or kept, with the pins. Throws what `Pins.see` throws. */
export async function seeKept(
  pins: Pins,
  context: RequestContext,
  connection: AuthorizedConnection,
  kept: Kept,
): Promise<ConnectionPins> {
  const { instructions: text, instructionsHash: hash } = kept
  const known = await pins.of(context, connection)
  const list = await allowanceOf(context.request).run(hashing(kept, known))
  // A greeting that could not be had says nothing.
  const said = hash === undefined ? {} : { instructions: hash === null ? null : { text: text ?? '', hash } }
  return pins.see(context, connection, { tools: { list, isComplete: true }, ...said })
}

/** Leaves out of kept lists what the pins of their connection hide. Throws what `Pins.see` throws. */
export function createAcceptedLists(pins: Pins) {
  /** By the lists with everything. Hashing them takes as long as reading them. */
  const accepted = new WeakMap<Kept, { readonly pins: string; readonly kept: Kept }>()
  return async (context: RequestContext, connection: AuthorizedConnection, kept: Kept): Promise<Kept> => {
    if ((await pins.settingOf(context, connection)) !== 'block') return kept
    let known = await pins.of(context, connection)
    // They were read while the pins were off.
    if (known.tools === undefined) known = await seeKept(pins, context, connection, kept)
    const former = accepted.get(kept)
    if (former?.pins === known.id) return former.kept
    const allowance = allowanceOf(context.request)
    const hashes = hashesByName(await allowance.run(hashing(kept, known)))
    const made = await allowance.run(accepting(kept, known, hashes))
    accepted.set(kept, { pins: known.id, kept: made })
    return made
  }
}

/**
 * The kept lists with what is accepted, as work in steps. Its texts are those that were hashed: a number of twenty
 * digits, or 1e999, has the hash of another one. `hashes`: of the tools of the kept lists, by name.
 */
function* accepting(kept: Kept, known: ConnectionPins, hashes: ReadonlyMap<string, string>): Generator<number, Kept> {
  const { tools: pinned, instructions: text } = known
  // Something else than what is kept may have been seen at the connection itself.
  const isShown = (pin: Pin | undefined, hash: string | undefined) => isUsable(pin) && pin?.accepted === hash
  const tools: KeptDefinition[] = []
  for (const one of kept.lists.tools) {
    if (!isShown(pinned?.get(one.own), hashes.get(one.own))) continue
    yield 2 * one.rest.length
    tools.push({ own: one.own, rest: restOf('tools', definitionOf('tools', one)) })
  }
  const { instructions, instructionsHash, ...rest } = kept
  const isTextAccepted = typeof instructionsHash === 'string' && text?.accepted === instructionsHash
  return {
    ...rest,
    // With other pins, a search makes its index again.
    id: `${kept.id} ${known.id}`,
    ...(isTextAccepted && { instructions, instructionsHash }),
    lists: { ...kept.lists, tools },
  } as Kept
}

/** The tools of kept lists by their hashes, as work in steps. Those that are accepted are without their texts. */
function* hashing(kept: Kept, { tools }: ConnectionPins): Generator<number, SeenDefinition[]> {
  const list: SeenDefinition[] = []
  for (const one of kept.lists.tools) {
    const { name, hash, text } = yield* hashingDefinition(definitionOf('tools', one))
    list.push(tools?.get(name)?.accepted === hash ? { name, hash } : { name, hash, text })
  }
  return list
}
