/** The position of a JSON syntax error: the runtime's parser reports what is wrong, but not where. */

/** Invalid JSON is parsed a second time, at 40 MB a second, to locate the error. Past it: the error has no position. */
const jsonPlaceCharsMax = 256 * 1024

/** ` (line 3, column 5)`, or '' if it cannot be determined. For a text that JSON.parse() refused. */
export function jsonErrorPosition(text: string): string {
  if (text.length > jsonPlaceCharsMax) return ''
  // Loaded at the first error: most processes never need it.
  const { visit } = require('jsonc-parser/lib/esm/main.js') as typeof import('jsonc-parser')
  let place = ''
  try {
    const onError = (_code: number, _offset: number, _length: number, line: number, column: number) => {
      place = ` (line ${line + 1}, column ${column + 1})`
      // Stop at the first error.
      throw new Error('found')
    }
    visit(text, { onError }, { disallowComments: true })
  } catch {
    // Either the error was found, or the text is nested too deeply for this parser.
  }
  return place
}
