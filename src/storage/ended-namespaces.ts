/**
 * When a namespace was deleted last, or given to another owner. The mark stays: who has the name later sees nothing of
 * before, whatever time a file states.
 */

import { randomUUID } from 'node:crypto'
import { createdAtOf, type Namespace } from '../model/organization.ts'
import { textOf } from './bytes.ts'
import { keyOf } from './keys.ts'
import type { Entry, Store } from './store.ts'

/** The write that marks the end. It is a version, too: whoever writes to the namespace meanwhile starts again. */
export function namespaceEnd(namespace: string, now: Date): Entry {
  return { key: keyOf('endedNamespace', namespace), value: Buffer.from(`${now.toISOString()} ${randomUUID()}`) }
}

/** A namespace from a file. It was made when its name was given up last, if the file states a time before. */
export async function madeAfterEnd(store: Pick<Store, 'get'>, wanted: Namespace): Promise<Namespace> {
  const mark = await store.get(keyOf('endedNamespace', wanted.namespace))
  const [createdAt = ''] = mark === undefined ? [] : textOf(mark).split(' ', 1)
  return Date.parse(createdAt) > Date.parse(createdAtOf(wanted)) ? { ...wanted, createdAt } : wanted
}
