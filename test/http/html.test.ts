/** Templates in which foreign text stays text. */

import { expect, test } from 'bun:test'
import { html } from '../../src/http/html.ts'

test('texts and numbers are escaped, HTML and lists are inserted, what is not there is left out', () => {
  const row = (name: string) => html`<li title="${name}">${name}</li>`
  const made = html`<ul>${[row('a'), row('"<&>"')]}</ul>${5}${undefined}${false}${0 > 1 && html`<b>`}${''}.`
  expect(made.text).toBe(
    '<ul><li title="a">a</li><li title="&quot;&lt;&amp;&gt;&quot;">&quot;&lt;&amp;&gt;&quot;</li></ul>5.',
  )
})

test('text shows what nobody would see, or what would turn the words around it; an attribute is what it is', () => {
  const rows: [text: string, shown: string][] = [
    ['list\u202eseussi', 'list\\u{202e}seussi'],
    ['list_\u200bissues', 'list_\\u{200b}issues'],
    ['a\u00adb\u061cc\u200dd\u2066e\u2069', 'a\\u{ad}b\\u{61c}c\\u{200d}d\\u{2066}e\\u{2069}'],
    ['\ufeffa\u2028b\u2029c\u3164d\u2800e\u{e0041}', '\\u{feff}a\\u{2028}b\\u{2029}c\\u{3164}d\\u{2800}e\\u{e0041}'],
    ['\u0000\u001b[31m\u007f\u009b', '\\u{0}\\u{1b}[31m\\u{7f}\\u{9b}'],
    ['1\ufe0f \ud800', '1\\u{fe0f} \\u{d800}'],
    // Lines, letters of all scripts, and emoji stay.
    ['one\r\n\ttwo', 'one\r\n\ttwo'],
    ['Zoë 東京 עברית 👩‍👩‍👧 ❤️ 👍🏽', 'Zoë 東京 עברית 👩‍👩‍👧 ❤️ 👍🏽'],
    // What looks like it is told apart from it.
    ['\\u{202e} \\u', '\\u{5c}u{202e} \\u'],
  ]
  for (const [text, shown] of rows) {
    expect(html`<p>${text}</p>${[text]}`.text).toBe(`<p>${shown}</p>${shown}`)
    expect(html`<input value="${text}">`.text).toBe(`<input value="${text}">`)
  }
})
