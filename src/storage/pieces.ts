/** Lists in pieces, for those that do not fit into memory, a statement or a transaction. */

import type { Entry } from './store.ts'

/** When a piece is full: at so many members, or as soon as they have so many bytes. */
interface PieceSize<T> {
  readonly most?: number
  readonly bytes?: number
  readonly bytesOf?: (one: T) => number
}

/** The members of a list in pieces, each made when it is asked for. */
export function* piecesOf<T>(
  all: Iterable<T>,
  { most = Infinity, bytes = Infinity, bytesOf = () => 0 }: PieceSize<T>,
): Generator<T[]> {
  let piece: T[] = []
  let taken = 0
  for (const one of all) {
    piece.push(one)
    taken += bytesOf(one)
    if (piece.length < most && taken < bytes) continue
    yield piece
    piece = []
    taken = 0
  }
  if (piece.length > 0) yield piece
}

export function entryBytes({ key, value }: Entry): number {
  return key.length + value.length
}
