/** Which records a fixture brings, and where: they are changed there, and not over HTTP (door contract, 4.1). */

import { conflict } from '../errors.ts'
import { placeKey } from './keys.ts'
import type { Key, Store } from './store.ts'

/** Throws `conflict` for a record that a fixture brings. */
export async function refuseFixture(store: Pick<Store, 'get'>, record: Key): Promise<void> {
  const place = await store.get(placeKey(record))
  if (place !== undefined)
    throw conflict(`It is brought by a fixture and is changed there: ${Buffer.from(place).toString()}`)
}
