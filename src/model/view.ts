/** Views: named selections of a namespace, each with a URL (contract, 20.10). */

import { type Static, Type } from '@sinclair/typebox'
import { closedObject, nullable } from '../schema/shapes.ts'
import { Constraint } from './constraint.ts'
import { matcherOf, Slug } from './names.ts'

/** Contract 20.10: constraints of a view. Past it: 400. */
const viewPolicyMax = 16
/** Contract 20.10: names that the list of a view with a search always has. Past it: 400. */
const alwaysMax = 5
/** Ours: characters of a name that the list of a view with a search always has. Past it: 400. */
const alwaysCharsMax = 200
/** Contract 20.10: characters of the instructions of a view or a namespace. Past it: 400. */
const ownInstructionsCharsMax = 1000
/** Contract 20.10: characters of the title of a view or a namespace. Past it: 400. */
const titleCharsMax = 100
/** Contract 20.10: characters of the description of a view or a namespace. Past it: 400. */
const descriptionCharsMax = 500

export const ViewName = Type.String({
  pattern: '^[a-z0-9](?:[a-z0-9-]{0,37}[a-z0-9])?$',
  errorMessage: 'must be 1 to 39 characters (a-z, 0-9 and "-"), beginning and ending with a letter or digit',
})
export const isViewName = matcherOf(ViewName)

const text = (maxLength: number) => nullable(Type.String({ minLength: 1, maxLength }))
/** The texts of a namespace or a view; null for none. */
export const ownTexts = {
  title: text(titleCharsMax),
  description: text(descriptionCharsMax),
  instructions: text(ownInstructionsCharsMax),
}

const settings = {
  /** Narrows what a caller may do, as the policy of a token does. Empty: nothing. */
  policy: Type.Array(Constraint, { maxItems: viewPolicyMax }),
  search: Type.Boolean(),
  /** Listed names that the list has besides those of a search. */
  always: Type.Array(Type.String({ minLength: 1, maxLength: alwaysCharsMax }), { maxItems: alwaysMax }),
  names: Type.Union([Type.Literal(46), Type.Literal(64)], { errorMessage: 'must be 46 or 64' }),
  bareNames: Type.Boolean(),
  status: Type.Boolean(),
  ...ownTexts,
}
const { policy, ...optional } = settings

/** The body of `PUT`. */
export const ViewWrite = closedObject({ policy, ...Type.Partial(Type.Object(optional)).properties })
export type ViewWrite = Static<typeof ViewWrite>

const times = { createdAt: Type.String(), updatedAt: Type.String() }
export const View = closedObject({ namespace: Slug, name: ViewName, ...settings, ...times })
export type View = Static<typeof View>

export const ViewDetail = closedObject({ ...View.properties, url: Type.String() })
export type ViewDetail = Static<typeof ViewDetail>
export const ViewList = closedObject({ views: Type.Array(ViewDetail) })
export const ViewDeleted = closedObject({ success: Type.Literal(true), namespace: Slug, name: ViewName })

export const FixtureView = closedObject({ namespace: Slug, name: ViewName, ...ViewWrite.properties })

/** The view that a body makes, with its defaults. */
export function viewOf(
  { namespace, name }: Pick<View, 'namespace' | 'name'>,
  write: ViewWrite,
  { createdAt, updatedAt }: Pick<View, 'createdAt' | 'updatedAt'>,
): View {
  const { policy, search = false, always = [], names = 46, bareNames = false, status = false } = write
  const { title = null, description = null, instructions = null } = write
  return {
    ...{ namespace, name, policy, search, always, names, bareNames, status },
    ...{ title, description, instructions, createdAt, updatedAt },
  }
}
