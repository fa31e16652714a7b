/** Where a text stops being JSON: the runtime's parser says what is wrong, and not where. */

import { jsonPlaceCharsMax } from '../limits.ts'

/** ` (line 3, column 5)`; '' where it cannot be told. For a text that the runtime refused. */
export function jsonErrorPosition(text: string): string {
  if (text.length > jsonPlaceCharsMax) return ''
  // Loaded when first needed: most processes never do.
  const { visit } = require('jsonc-parser/lib/esm/main.js') as typeof import('jsonc-parser')
  let place = ''
  try {
    const onError = (_code: number, _offset: number, _length: number, line: number, column: number) => {
      place = ` (line ${line + 1}, column ${column + 1})`
      // The first is the one that counts.
      throw new Error('found')
    }
    visit(text, { onError }, { disallowComments: true })
  } catch {
    // Found, or nested deeper than the parser goes.
  }
  return place
}
