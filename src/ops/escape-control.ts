/**
 * Escapes characters that a terminal or viewer would act on, line breaks included, in text that may be someone else's.
 * The escapes are those of JSON.
 */
export function escapeControlCharacters(text: string): string {
  return text.replace(acted, escapeOne)
}

/** The same, but keeps newlines and tabs: for texts of several lines and columns. */
export function escapeControlCharactersInLines(text: string): string {
  return text.replace(actedButLines, escapeOne)
}

/** Control characters, line breaks, and marks that change the direction of text. */
const acted = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g
const actedButLines = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g

function escapeOne(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}
