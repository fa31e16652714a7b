/** Texts that come from strangers: names, descriptions, results, messages. They stay text (contract, 23.7). */

import { useState } from 'preact/hooks'

/** Characters that are shown at first. Past it: the rest after a press. */
const shownCharsMax = 2000

/** Control, bidirectional, zero-width, blank and tag characters, and endless combining ones: they disguise a text. */
const unseen =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|\u034f|[\u115f\u1160\u2800\u3164\uffa0]|[\ufe00-\ufe0d]|[\u{e0000}-\u{e0fff}]|\p{M}{8,}/gu

export const hasUnseen = (text: string) => text.search(unseen) >= 0

/** Marks in one text. Past it: the rest of the text is shown without them. */
const marksMax = 200

const named = (character: string) => `U+${character.codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0')}`

/** The text where no element can be: in an option, a title, a placeholder. */
export const visible = (text: string) => text.slice(0, shownCharsMax).replace(unseen, named)

export const capital = (word: string) => word.replace(/^./, (first) => first.toUpperCase())

interface ForeignProps {
  readonly text: string
  readonly code?: boolean
  readonly strong?: boolean
  /** Characters that are shown at first. */
  readonly most?: number
  /** The element around it, with its class. */
  readonly as?: 'p' | 'pre' | 'small' | 'span' | 'dt' | 'del' | 'ins'
  readonly class?: string
}

export function Foreign({ text: given, code, strong, most = shownCharsMax, as: Around, ...props }: ForeignProps) {
  const [isWhole, setWhole] = useState(false)
  // A server may write something else where a text should be.
  const text = typeof given === 'string' ? given : ''
  const shown = isWhole ? text : text.slice(0, most)
  const parts = []
  let from = 0
  for (const { 0: character, index } of shown.matchAll(unseen)) {
    if (parts.length > 2 * marksMax) break
    parts.push(shown.slice(from, index), <i class="mark">{named(character)}</i>)
    from = index + character.length
  }
  // A text of nothing else would be as many elements.
  parts.push(parts.length > 2 * marksMax ? shown.slice(from).replace(unseen, '') : shown.slice(from))
  const isCut = shown.length < text.length
  const inside = (
    <bdi class={`foreign${code === true ? ' code' : ''}${strong === true ? ' strong' : ''}`}>
      {parts}
      {isCut && (
        <button type="button" class="small" data-action="more" onClick={() => setWhole(true)}>
          Show all {text.length} characters
        </button>
      )}
    </bdi>
  )
  return Around === undefined ? inside : <Around class={props.class}>{inside}</Around>
}
