/** The members of a list, `size` at a time. */
export function* piecesOf<T>(all: Iterable<T>, size: number): Generator<T[]> {
  let piece: T[] = []
  for (const one of all) {
    piece.push(one)
    if (piece.length < size) continue
    yield piece
    piece = []
  }
  if (piece.length > 0) yield piece
}
