/** Escapes, as JSON does, characters that a terminal or viewer would act on, line breaks included. */
export function escapeControlCharacters(text: string): string {
  return text.replace(acted, escapeOne)
}

/** A text of others as a part of one line of a terminal: all that acts there, or that nobody sees, is escaped. */
export function oneLine(text: string): string {
  return showHiddenCharacters(escapeControlCharacters(text))
}

/** As `escapeControlCharacters`, but keeps newlines and tabs: for texts of several lines and columns. */
export function escapeControlCharactersInLines(text: string): string {
  return text.replace(actedButLines, escapeOne)
}

/**
 * The text for a page: characters that nobody sees, or that turn the words around them, are shown as `\u{…}`, so that
 * no two names look alike for them. Line breaks, tabs and what joins emoji stay.
 */
export function showHiddenCharacters(text: string): string {
  return text.replace(hidden, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`)
}

/** Also the beginning of what looks like an escape. `v`: for sets without a part of them. */
const hidden = new RegExp(
  [
    '[[\\p{Cc}\\p{Cf}\\p{Cs}\\p{Zl}\\p{Zp}\\p{Default_Ignorable_Code_Point}\\u2800]--[\\t\\n\\r\\u200d\\ufe0f]]',
    '(?<![\\p{Extended_Pictographic}\\p{Emoji_Modifier}\\ufe0f])\\u200d|\\u200d(?!\\p{Extended_Pictographic})',
    '(?<!\\p{Extended_Pictographic})\\ufe0f',
    '\\\\(?=u\\{)',
  ].join('|'),
  'gv',
)

/** Control characters, line breaks, and marks that change the direction of text. */
const acted = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g
const actedButLines = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g

function escapeOne(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}
