/** The registry of a namespace, which leads editors to its endpoint (contract, 20.13). */

import { type Static, Type } from '@sinclair/typebox'
import { closedObject } from '../schema/shapes.ts'

/** Ours: characters of the name of a registry link. Past it: 400. */
const linkNameCharsMax = 100

export const RegistryLinkWrite = closedObject({
  name: Type.Optional(Type.String({ minLength: 1, maxLength: linkNameCharsMax })),
})

const shown = { id: Type.String(), name: Type.String(), createdAt: Type.String() }
/** `url`: with the secret, which no later answer has. */
export const RegistryLinkMade = closedObject({ ...shown, url: Type.String() })
export type RegistryLinkMade = Static<typeof RegistryLinkMade>
export const RegistryLinkList = closedObject({ links: Type.Array(closedObject(shown)) })
export type RegistryLinkList = Static<typeof RegistryLinkList>

/** A link as it is stored. `namespaceSince`: when its namespace was made: another of the name has other links. */
export interface RegistryLink {
  readonly id: string
  readonly name: string
  readonly createdAt: string
  readonly namespaceSince: string
}

/** Versions of an entry, as they are stored. `hash`: of what the entry says. */
export interface PublishedEntry {
  readonly hash: string
  /** The last number of the version. */
  readonly changes: number
  readonly publishedAt: string
  readonly updatedAt: string
}
