/** Texts as people should see them: with every character that leaves no mark written out. */

/**
 * Format, control and private-use characters, separators but space and line break, and those that other properties
 * have: fillers and variation selectors.
 */
const invisible = new RegExp(
  [
    String.raw`[\p{Cf}\p{Co}\p{Cn}]|(?![ \t\n\r])[\p{Cc}\p{Z}]`,
    String.raw`\p{Default_Ignorable_Code_Point}|\p{Variation_Selector}|\u{ffa0}|\u{3164}`,
  ].join('|'),
  'gu',
)

/** Invisible characters as `\u{200b}`. */
export function shownText(text: string): string {
  return text.replace(invisible, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`)
}

/** All texts of a JSON value, and names of members, one a line. */
export function textsIn(value: unknown): string {
  const texts: string[] = []
  const add = (one: unknown): void => {
    if (typeof one === 'string') texts.push(one)
    if (typeof one !== 'object' || one === null) return
    for (const [name, inner] of Object.entries(one)) {
      if (!Array.isArray(one)) texts.push(name)
      add(inner)
    }
  }
  add(value)
  return texts.join('\n')
}
