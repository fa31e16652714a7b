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
