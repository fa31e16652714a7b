/**
 * Marks that keep the time at which a namespace was deleted last, or given to another owner. They are never removed. A
 * file may state an earlier time for a later namespace of that name; its owner sees nothing from before the mark.
 */

import { randomUUID } from 'node:crypto'
import { createdAtOf, type Namespace } from '../model/organization.ts'
import { textOf } from './bytes.ts'
import { keyOf } from './keys.ts'
import type { Entry, Store } from './store.ts'

/** The entry that marks the end. Its value is new each time: a write that checks it and came before conflicts. */
export function namespaceEnd(namespace: string, now: Date): Entry {
  return { key: keyOf('endedNamespace', namespace), value: Buffer.from(`${now.toISOString()} ${randomUUID()}`) }
}

/** The namespace with the time of its name's mark, if that is later than its own. */
export async function madeAfterEnd(store: Pick<Store, 'get'>, wanted: Namespace): Promise<Namespace> {
  const mark = await store.get(keyOf('endedNamespace', wanted.namespace))
  const [createdAt = ''] = mark === undefined ? [] : textOf(mark).split(' ', 1)
  return Date.parse(createdAt) > Date.parse(createdAtOf(wanted)) ? { ...wanted, createdAt } : wanted
}
