/** HTML from templates in which every inserted text is escaped, so that foreign text stays text, and hides nothing. */

import { showHiddenCharacters } from '../ops/escape-control.ts'

/** HTML that may be inserted into other HTML as it is. */
export class Html {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

type Insert = string | number | Html | undefined | false | readonly Insert[]

/**
 * A template: strings and numbers are escaped, Html is inserted, lists are joined, undefined and false are left out.
 * Text shows hidden characters; the value of an attribute, which programs read, is what it is.
 */
export function html(strings: TemplateStringsArray, ...inserts: readonly Insert[]): Html {
  const isAttribute = (index: number) => strings[index]?.endsWith('="') === true
  return new Html(
    strings.reduce((text, part, index) => text + insertText(inserts[index - 1], isAttribute(index - 1)) + part),
  )
}

function insertText(insert: Insert, isAttribute: boolean): string {
  if (insert === undefined || insert === false) return ''
  if (insert instanceof Html) return insert.text
  if (typeof insert === 'object') return insert.map((one) => insertText(one, isAttribute)).join('')
  return escapeHtml(isAttribute ? String(insert) : showHiddenCharacters(String(insert)))
}

/** For text and for attribute values in double quotes. */
export function escapeHtml(plain: string): string {
  return plain.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}
