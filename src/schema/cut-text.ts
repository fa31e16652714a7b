/** Shortens texts of others that postern keeps. */

/**
 * The first characters of a text, in memory of their own: a slice of a text, and a text that contains one, keep the
 * whole in memory, of which somebody may send a megabyte for a name.
 */
export function cutText(text: string, most: number): string {
  return text.length <= most ? text : Buffer.from(text.slice(0, most)).toString()
}
