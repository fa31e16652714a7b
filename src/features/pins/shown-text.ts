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

/** A JSON value with its texts, and names of members, as people should see them. */
export function shownValue(value: unknown): unknown {
  if (typeof value === 'string') return shownText(value)
  if (Array.isArray(value)) return value.map(shownValue)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [shownText(name), shownValue(one)]))
}

/** All texts of a JSON value, and names of members, one a line. */
export function textsIn(value: unknown): string {
  if (typeof value === 'string') return value
  if (typeof value !== 'object' || value === null) return ''
  const names = Array.isArray(value) ? [] : Object.keys(value)
  return [...names, ...Object.values(value).map(textsIn)].join('\n')
}
