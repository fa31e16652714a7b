/** The layout version (`storage/README.md`). A store of another version is refused unchanged. */

import { asBuffer } from '../bytes.ts'
import { StoreError } from '../store.ts'
import { type Bytes, openBytes, type Root } from './root.ts'

const version = 'postern 1'
const versionKey = Buffer.from('v')
/** The database of packed kinds. */
export const segmentsName = 'segments'

/** Opens `data` for single records, `segments` for packed kinds. Throws StoreError `fatal` for another layout. */
export function openRecords(root: Root): { readonly data: Bytes; readonly segments: Bytes } {
  // The version has its own database, so that it is not one of the records.
  const format = openBytes(root, 'format')
  const stored = format.get(versionKey)
  if (stored === undefined) root.transactionSync(() => void format.put(versionKey, Buffer.from(version)))
  const found = stored === undefined ? version : asBuffer(stored).toString('latin1', 0, 20)
  if (found !== version) {
    throw new StoreError(
      'fatal',
      `another version of postern wrote it (layout ${found}, not ${version}): export it with that version, and import the export`,
    )
  }
  return { data: openBytes(root, 'postern'), segments: openBytes(root, segmentsName) }
}
