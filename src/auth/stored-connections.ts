/** Reads connections, of which each may have 64 kB, in the time of the request's owner. */

import { allowanceOf } from '../fairness/allowance.ts'
import type { Work } from '../fairness/turns.ts'
import type { ConnectionRef } from '../model/connection.ts'
import { reading } from '../schema/json.ts'
import { type ConnectionRecord, decoded, findRecords, type StoredConnection } from '../storage/connections.ts'
import { piecesOf } from '../storage/pieces.ts'
import type { Store } from '../storage/store.ts'

/** Connections that are read at once. Past it: the rest follows, when the owner has time again. */
const readAtOnceMax = 25
/**
 * Bytes of several records that are parsed in one turn, for which their owner has memory: headers and tokens that are
 * sealed for a connection may have twice the bytes of the rest. Past it: in the next turn.
 */
const parsedPerTurnMax = 1024 * 1024
/** Bytes of several records that are parsed without waiting for the owner's time. Past it: in its turns. */
const parsedAtOnceMax = 32 * 1024
/** The same of one record: a request may look at many, one after the other. Past it: in its turns. */
const oneParsedAtOnceMax = 4 * 1024
/** Milliseconds that a megabyte of a record takes at most to parse: of escapes and many small values, for instance. */
const decodeMsPerMegabyte = 5
/** Characters of other texts (`Allowance.parse`) for a byte: metadata may be empty objects, which leave most behind. */
const parsedPerByte = 3

/** Connections in the order of `refs`; undefined if missing. Each read is one snapshot. Rejects with `rate_limited`. */
export async function manyConnections(
  store: Pick<Store, 'getMany'>,
  request: Request,
  refs: readonly ConnectionRef[],
): Promise<(StoredConnection | undefined)[]> {
  const found: (StoredConnection | undefined)[] = []
  for await (const records of recordsInParts(store, request, refs)) {
    const bytes = bytesOf(records)
    if (bytes <= (records.length > 1 ? parsedAtOnceMax : oneParsedAtOnceMax)) found.push(...records.map(decoded))
    else
      for (const piece of piecesOf(records, { bytes: parsedPerTurnMax, bytesOf: sizeOf }))
        found.push(...(await allowanceOf(request).parse(bytesOf(piece) * parsedPerByte, decoding(piece))))
  }
  return found
}

/** The same records as stored, a part at a time; each waits for the owner's time if `waits`. Throws `rate_limited`. */
export async function* recordsInParts(
  store: Pick<Store, 'getMany'>,
  request: Request,
  refs: readonly ConnectionRef[],
  waits = refs.length > 1,
): AsyncGenerator<(ConnectionRecord | undefined)[]> {
  const allowance = allowanceOf(request)
  for (let at = 0; at < refs.length; at += readAtOnceMax) {
    const read = () => findRecords(store, refs.slice(at, at + readAtOnceMax))
    const records = waits ? await allowance.readRecords(read, bytesOf) : await read()
    if (!waits) allowance.spendRead(bytesOf(records))
    yield records
  }
}

/**
 * The connection that a request is for; undefined if it does not exist. It is parsed at once, in a third of a
 * millisecond at most, so that what was authorized before is still true.
 */
export async function oneConnection(
  store: Pick<Store, 'getMany'>,
  request: Request,
  ref: ConnectionRef,
): Promise<StoredConnection | undefined> {
  const [record] = await findRecords(store, [ref])
  const bytes = sizeOf(record)
  if (bytes > oneParsedAtOnceMax) allowanceOf(request).spendAtOnce((bytes / 2 ** 20) * decodeMsPerMegabyte)
  return decoded(record)
}

function* decoding(records: readonly (ConnectionRecord | undefined)[]): Work<(StoredConnection | undefined)[]> {
  const found: (StoredConnection | undefined)[] = []
  for (const record of records) found.push(yield* reading(sizeOf(record), () => decoded(record)))
  return found
}

const bytesOf = (records: readonly (ConnectionRecord | undefined)[]): number =>
  records.reduce((sum, record) => sum + sizeOf(record), 0)

function sizeOf(record: ConnectionRecord | undefined): number {
  return (record?.bytes.length ?? 0) + (record?.privateBytes?.length ?? 0)
}
