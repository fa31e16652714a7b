/** A page of a chained file, the newest lines first, within a bound of lines that a request looks at. */

import type { Stats } from 'node:fs'
import { open } from 'node:fs/promises'
import { openText, sealText } from '../../auth/secrets.ts'
import { invalidRequest } from '../../errors.ts'
import { allowanceOf } from '../../fairness/allowance.ts'
import { readInteger } from '../../http/query.ts'
import { listPageMax } from '../../limits.ts'
import { type Line, linesBefore } from '../../ops/lines-backwards.ts'

/** Contract 18.5: lines of a log that one request looks at. Past it: the page ends, with a cursor and `stopped`. */
const linesPerRequestMax = 100_000

/**
 * `path`: undefined, or the path of no file, where nothing is recorded. `read`: the item of a line, if it is wanted.
 * `stopped`: the page ended because the request had looked at as many lines as it may. The cursor is sealed, because
 * where a line stands in the file tells how much others do. Throws `invalid_request` and `rate_limited`.
 */
export async function pageBack<T>(
  request: Request,
  { path, query, key }: { path: string | undefined; query: ReadonlyMap<string, string>; key: Buffer },
  read: (line: string) => Promise<T | undefined> | T | undefined,
) {
  const limit = readInteger(query, 'limit', { least: 1, most: listPageMax, otherwise: listPageMax })
  const items: T[] = []
  const cursor = query.get('cursor')
  let [binding, next] = ['', 0]
  const back = new LinesBack(request, path, ({ ino, size }) => {
    binding = `lines of ${ino}`
    next = cursor === undefined ? size : Number(openText(key, cursor, binding) ?? Number.NaN)
    if (next <= size) return next
    throw invalidRequest('cursor: not valid for this list, or its file was moved away; start again without it')
  })
  const page = (stopped: boolean) => ({ items, nextCursor: sealText(key, String(next), binding), stopped })
  for await (const lines of back.lines)
    for (const { text, start } of lines) {
      if (items.length === limit) return page(false)
      const item = await read(text)
      if (item !== undefined) items.push(item)
      next = start
    }
  return back.stopped ? page(true) : { items, nextCursor: null, stopped: false }
}

/** The whole lines of a file, the newest first, in slices of the request's owner; none without a file. */
export class LinesBack {
  readonly lines: AsyncGenerator<readonly Line[]>
  /** When the lines have ended: whether the request had looked at as many as it may. */
  stopped = false

  /** `placeIn`: the byte where the first line ends. */
  constructor(request: Request, path: string | undefined, placeIn = ({ size }: Stats) => size) {
    this.lines = this.#batches(request, path, placeIn)
  }

  async *#batches(
    request: Request,
    path: string | undefined,
    placeIn: (stats: Stats) => number,
  ): AsyncGenerator<readonly Line[]> {
    const slices = allowanceOf(request).slices()
    await using file = path === undefined ? null : await open(path, 'r').catch(() => null)
    if (file === null) return
    let left = linesPerRequestMax
    for await (const lines of linesBefore(file, placeIn(await file.stat()))) {
      this.stopped = lines.length > left
      yield lines.slice(0, left)
      left -= lines.length
      if (this.stopped) return
      if (slices.isOver) await slices.next()
    }
  }
}

/** The fields of a line; undefined for a line that is none of ours (`audit verify` tells of it). */
export function fieldsOf(text: string): Record<string, unknown> | undefined {
  try {
    return JSON.parse(text) as Record<string, unknown>
  } catch {
    return undefined
  }
}

/** A time in a query, in milliseconds since 1970. Throws `invalid_request`. */
export function readTime(query: ReadonlyMap<string, string>, name: string): number | undefined {
  const text = query.get(name)
  if (text === undefined) return undefined
  const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?Z$/.test(text) ? Date.parse(text) : Number.NaN
  if (Number.isNaN(time)) throw invalidRequest(`${name}: must be a time like 2026-03-02T09:00:00Z`)
  return time
}
