/** Shortens texts of others that postern keeps or repeats. */

/** Ours: characters of an unknown name that a message repeats. Past it: the name is cut, with an ellipsis. */
const repeatedCharsMax = 200

/**
 * The first characters of a text, none of them halved, in memory of their own: a slice of a text, and a text that
 * contains one, keep the whole in memory, of which somebody may send a megabyte for a name.
 */
export function cutText(text: string, most: number): string {
  if (text.length <= most) return text
  const isHalved = (text.codePointAt(most - 1) ?? 0) > 0xffff
  return Buffer.from(text.slice(0, isHalved ? most - 1 : most)).toString()
}

/** A text of at most so many characters; a cut one ends with `…`. */
export function shorten(text: string, most = repeatedCharsMax): string {
  return text.length > most ? `${cutText(text, most - 1)}…` : text
}
