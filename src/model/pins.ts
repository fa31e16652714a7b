/** Pins: the definitions of a connection that somebody accepted (contract, 20.12). */

import { type Static, Type } from '@sinclair/typebox'
import { closedObject, nullable, oneOf } from '../schema/shapes.ts'

/** The reaction to a definition that is not accepted. Left out: `warn`. */
export const PinsSetting = oneOf(['off', 'warn', 'block'])
export type PinsSetting = Static<typeof PinsSetting>

/** Signs of a definition that people should read with care. */
export const pinFindings = [
  ...(['hidden-characters', 'mixed-script', 'instruction-like', 'secret-path', 'other-tool', 'encoded-text'] as const),
] as const
export type PinFinding = (typeof pinFindings)[number]

/** One value in which a definition differs from the accepted one. */
const difference = closedObject({
  /** A JSON Pointer (RFC 6901) into the definition; '' for a text. */
  path: Type.String(),
  /** Left out: there was none. */
  before: Type.Optional(Type.Unknown()),
  after: Type.Optional(Type.Unknown()),
})
export type PinDifference = Static<typeof difference>

const pinned = {
  state: oneOf(['accepted', 'changed', 'added', 'removed']),
  /** By which it is accepted. */
  hash: Type.String(),
  findings: Type.Array(oneOf([...pinFindings])),
  diff: Type.Optional(Type.Array(difference)),
  /** Parts of the definition, or of the differences, are not shown. Left out: all are. */
  truncated: Type.Optional(Type.Literal(true)),
}

export const PinList = closedObject({
  pins: PinsSetting,
  tools: Type.Array(closedObject({ name: Type.String(), ...pinned })),
  instructions: nullable(closedObject(pinned)),
})
export type PinList = Static<typeof PinList>

const Hash = Type.String({ pattern: '^[0-9a-f]{64}$', errorMessage: 'must be a hash: 64 hexadecimal digits' })

/** Body of `POST`: hashes by name. */
export const PinAcceptance = closedObject({
  accept: Type.Optional(Type.Record(Type.String(), Hash)),
  instructions: Type.Optional(Hash),
})
export type PinAcceptance = Static<typeof PinAcceptance>
