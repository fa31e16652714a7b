/** Lists of bytes and numbers as the text of a PostgreSQL array, which any client can send as one parameter. */

/** `bytea[]`. null: NULL. */
export function bytesArray(all: readonly (Uint8Array | null)[]): string {
  return arrayOf(all.map((one) => (one === null ? null : `\\\\x${Buffer.from(one).toString('hex')}`)))
}

/** `text[]` or `bigint[]`. The texts must have no quotes and no backslashes. */
export function arrayOf(all: readonly (string | null)[]): string {
  return `{${all.map((one) => (one === null ? 'NULL' : `"${one}"`)).join(',')}}`
}
