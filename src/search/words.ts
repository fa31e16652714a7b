/**
 * The words of a text, for search: without case and accents. Names of programs come apart: `createIssue` and
 * `create_issue` both give the words `create` and `issue` (contract, 9.5).
 */

/**
 * Characters of a word that is indexed or searched, which bounds the memory for one. Past it: the rest is another word.
 */
const searchedWordCharsMax = 64

const longestWords = new RegExp(`[\\p{L}\\p{N}]{1,${searchedWordCharsMax}}`, 'gu')

/** In order, with repetitions. */
export function wordsOf(text: string): string[] {
  const parts = text.replace(/([\p{Ll}\p{N}])(\p{Lu})/gu, '$1 $2').replace(/(\p{Lu})(\p{Lu}\p{Ll})/gu, '$1 $2')
  return withoutMarks(parts).toLowerCase().match(longestWords) ?? []
}

/**
 * Characters that one becomes when it is normalized: a syllable of Korean becomes three. Some become eighteen, of which
 * a text could be full. Past it: the rest of such a piece is left out.
 */
const longerMost = 3

/**
 * Compatible forms without accents. Marks are put in order when a text is normalized, which takes time by the square of
 * their number; so it is normalized in short pieces. Their order does not matter: they are removed.
 */
function withoutMarks(text: string): string {
  if (/^[\x00-\x7f]*$/.test(text)) return text
  const pieces = text.match(/[^]{1,64}/gu) ?? []
  const formOf = (piece: string) => piece.normalize('NFKD').slice(0, longerMost * piece.length)
  return pieces.map((piece) => formOf(piece).replace(/\p{M}/gu, '')).join('')
}
