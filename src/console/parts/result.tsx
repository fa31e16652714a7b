/** The result of a tool, by the kind of each part. It is a stranger's: nothing of it is loaded or run. */

import { useEffect, useRef, useState } from 'preact/hooks'
import { asObject, isNumber } from '../json.ts'
import { Foreign } from './foreign.tsx'
import { Action } from './parts.tsx'

export interface ToolResult {
  readonly isError?: boolean
  readonly content?: unknown
  readonly structuredContent?: unknown
}

interface Part {
  readonly type: string
  readonly text?: string
  readonly data?: string
  readonly mimeType?: string
  readonly uri?: string
  readonly resource?: { readonly uri?: string; readonly text?: string }
}

/** Characters of a result that are painted at first. Past it: the rest after a press. */
const paintedCharsMax = 256 * 1024
/** Parts that are painted at first. Past it: the rest after a press. */
const partsMax = 100
const pictures = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp'])

export function Result({ result }: { readonly result: ToolResult }) {
  const { structuredContent } = result
  const [isWhole, setWhole] = useState(false)
  const all: readonly unknown[] = Array.isArray(result.content) ? result.content : []
  const content = isWhole ? all : all.slice(0, partsMax)
  const most = Math.ceil(paintedCharsMax / Math.max(1, content.length))
  return (
    <>
      {content.map((part, index) => (
        <PartOf key={index} part={part} most={most} />
      ))}
      {content.length < all.length && (
        <Action name="more" onClick={() => setWhole(true)} label={`Show all ${all.length} parts`} />
      )}
      {content.length === 0 && structuredContent === undefined && <p class="muted">The result is empty.</p>}
      {structuredContent !== undefined && (
        <section>
          <h3>Structured content</h3>
          <Tree value={structuredContent} />
        </section>
      )}
    </>
  )
}

function isPart(given: unknown): given is Part {
  const { type, text = '', data = '', mimeType = '', uri = '' } = asObject(given) ?? {}
  return [type, text, data, mimeType, uri].every((one) => typeof one === 'string')
}

/** Strangers write results: a part of another shape is shown as JSON. */
function PartOf({ part, most }: { readonly part: unknown; readonly most: number }) {
  if (!isPart(part)) return <Foreign as="pre" text={JSON.stringify(part)} most={most} />
  if (part.type === 'text') return <Foreign as="pre" text={part.text ?? ''} most={most} />
  if (part.type === 'image' && pictures.has(part.mimeType ?? '')) return <Picture part={part} />
  const within = part.resource?.text ?? part.uri ?? part.resource?.uri
  const text = typeof within === 'string' ? within : JSON.stringify(part)
  return (
    <pre>
      <Foreign as="small" class="muted" text={part.type} /> <Foreign text={text} most={most} />
    </pre>
  )
}

/** Drawn, since the page loads no picture but its own; and not before somebody wants it. */
function Picture({ part }: { readonly part: Part }) {
  const canvas = useRef<HTMLCanvasElement>(null)
  const [isWanted, setWanted] = useState(false)
  const [isBroken, setBroken] = useState(false)
  useEffect(() => {
    if (!isWanted) return
    const draw = async () => {
      const bytes = Uint8Array.from(atob(part.data ?? ''), (one) => one.charCodeAt(0))
      const bitmap = await createImageBitmap(new Blob([bytes], { type: part.mimeType ?? '' }))
      const element = canvas.current
      if (element === null) return
      Object.assign(element, { width: bitmap.width, height: bitmap.height })
      element.getContext('2d')?.drawImage(bitmap, 0, 0)
    }
    draw().catch(() => setBroken(true))
  }, [isWanted])
  if (isBroken) return <p class="wrong">The picture cannot be read.</p>
  if (isWanted) return <canvas ref={canvas} role="img" aria-label="A picture in the result" />
  return (
    <p>
      <Action name="open" onClick={() => setWanted(true)} label={`Show the picture (${part.mimeType})`} />
    </p>
  )
}

/** Members of a value that are shown at first. Past it: the rest after a press. */
const membersMax = 100
/** Levels that are open at first. */
const openLevels = 2

/** A value that opens step by step. */
export function Tree({ value, depth = 0 }: { readonly value: unknown; readonly depth?: number }) {
  const isOpen = depth < openLevels
  const [isSeen, setSeen] = useState(isOpen)
  const [isWhole, setWhole] = useState(false)
  if (typeof value !== 'object' || value === null || isNumber(value) || Object.keys(value).length === 0)
    return <Foreign text={JSON.stringify(value) ?? 'undefined'} code />
  const members = Object.entries(value)
  const shown = isWhole ? members : members.slice(0, membersMax)
  return (
    <details class="tree" open={isOpen} onToggle={() => setSeen(true)}>
      <summary>{Array.isArray(value) ? `${members.length} items` : `${members.length} members`}</summary>
      {isSeen && (
        <ul>
          {shown.map(([name, member]) => (
            <li key={name}>
              <Foreign text={name} strong /> <Tree value={member} depth={depth + 1} />
            </li>
          ))}
          {shown.length < members.length && (
            <li>
              <Action name="more" onClick={() => setWhole(true)} label={`Show all ${members.length}`} />
            </li>
          )}
        </ul>
      )}
    </details>
  )
}
