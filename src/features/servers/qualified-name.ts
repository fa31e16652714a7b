/** The qualifiedName in a path: `ns/server` or `ns%2Fserver`, or `ns` for a namespace-only server (contract 6). */

import { nameAfter } from '../../http/path.ts'
import { isQualifiedName } from '../../model/names.ts'

/** Undefined for a path that cannot name a server. A namespace-only name may end in a slash: `/servers/ns%2F`. */
export function readQualifiedName(url: string): string | undefined {
  const name = nameAfter('/servers/', url)
  const trimmed = name?.endsWith('/') === true ? name.slice(0, -1) : name
  if (trimmed === undefined || !isQualifiedName(trimmed)) return undefined
  // Only a namespace-only name may end in a slash.
  return trimmed !== name && trimmed.includes('/') ? undefined : trimmed
}
