/** Text of somebody else's on one line, with nothing in it that a terminal or a viewer would act on. */
export function escapeControlCharacters(text: string): string {
  return text.replace(acted, escapeOne)
}

/** The same of text with lines of its own: what a terminal is given, whatever is in it. */
export function escapeControlCharactersInLines(text: string): string {
  return text.replace(actedButLines, escapeOne)
}

/** Control characters, line ends, and the marks that turn the direction of text. */
const acted = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g
const actedButLines = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g

function escapeOne(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}
