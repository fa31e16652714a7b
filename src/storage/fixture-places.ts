/** Which records a fixture defines, and where. They are changed there, and not over HTTP (contract, 11.3). */

import { conflict } from '../errors.ts'
import { placeKey } from './keys.ts'
import type { Key, Store } from './store.ts'

/** Throws `conflict` for a record that a fixture defines. */
export async function refuseFixture(store: Pick<Store, 'get'>, record: Key): Promise<void> {
  const place = await store.get(placeKey(record))
  if (place !== undefined) throw conflict(`A fixture defines it: change it in ${Buffer.from(place).toString()}`)
}
