/** Texts as people should see them: with every character that leaves no mark written out. */

import type { Work } from '../../fairness/turns.ts'
import { sliceCost } from '../../limits.ts'
import { valuesPerStep } from '../../schema/steps.ts'

/** Characters without a mark: format, control, private use, most separators, fillers and variation selectors. */
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

/** All texts of a JSON value, and names of members, one a line. As work in steps. */
export function* textsIn(value: unknown): Work<string> {
  const texts: string[] = []
  let looked = 0
  function* add(one: unknown): Work<void> {
    looked += 1
    if (looked % valuesPerStep === 0) yield sliceCost
    if (typeof one === 'string') texts.push(one)
    if (typeof one !== 'object' || one === null) return
    if (Array.isArray(one)) for (const inner of one) yield* add(inner)
    else
      for (const [name, inner] of Object.entries(one)) {
        texts.push(name)
        yield* add(inner)
      }
  }
  yield* add(value)
  return texts.join('\n')
}
