/** The lines of an export, read and checked one by one. */

import { closeSync, openSync, readSync } from 'node:fs'
import { CommandError } from '../errors.ts'
import { fixtureDepthMax } from '../limits.ts'
import { problemText } from '../schema/check.ts'
import { readJsonBytes } from '../schema/json.ts'
import { type ExportLine, endShape, headShape, lineShapes } from './export-format.ts'

/**
 * All that was stored can be read again: servers of others send texts with half of a character, and parts that were
 * written one by one may have more texts with one hash than one request may. An import holds up nobody.
 */
const asStored = { depthMax: fixtureDepthMax, hashedTextsMin: Infinity, allowsHalves: true }

/**
 * Reads and checks all lines, and passes those of records on. `secret`: of the instance that was exported
 * (`headShape`). Throws CommandError with `file:line` for the first bad line, and for a file without an end.
 */
export function* linesOf(file: string): Generator<{ readonly line: ExportLine; readonly secret: string }> {
  let secret = ''
  let number = 0
  let ended = false
  for (const bytes of rawLines(file)) {
    number += 1
    const wrong = (what: string) => new CommandError(`${file}:${number}: ${what}`)
    if (bytes.length === 0) continue
    const read = readJsonBytes(bytes, asStored)
    if (number === 1) {
      if ('problem' in read || !headShape.isValid(read.value))
        throw wrong('is not the first line of an export of this version: name a file that `postern export` wrote')
      secret = read.value.secret
      continue
    }
    if ('problem' in read) throw wrong(problemText(read.problem))
    if (endShape.isValid(read.value)) {
      if (read.value.records !== number - 2)
        throw wrong(`says that the export has ${read.value.records} records, and it has ${number - 2}`)
      ended = true
      continue
    }
    if (ended) throw wrong('stands after the end')
    const kind = String((read.value as { kind?: unknown } | null)?.kind)
    const shape = Object.hasOwn(lineShapes, kind) ? lineShapes[kind] : undefined
    if (shape === undefined)
      throw wrong(`kind: ${JSON.stringify(kind)} is none of ${Object.keys(lineShapes).join(', ')}`)
    if (!shape.isValid(read.value)) throw wrong(problemText(shape.firstProblem(read.value)))
    yield { line: read.value as ExportLine, secret }
  }
  if (number === 0) throw new CommandError(`${file}: is empty`)
  if (!ended) throw new CommandError(`${file}: is cut off: its last line is missing`)
}

/** The lines of a file as bytes, read a piece at a time. Each is valid until the next. */
function* rawLines(file: string): Generator<Buffer> {
  const descriptor = openSync(file, 'r')
  try {
    const chunk = Buffer.allocUnsafe(1024 * 1024)
    let rest = Buffer.alloc(0)
    for (;;) {
      const length = readSync(descriptor, chunk, 0, chunk.length, null)
      if (length === 0) break
      const bytes = Buffer.concat([rest, chunk.subarray(0, length)])
      let start = 0
      for (let end = bytes.indexOf(10); end >= 0; end = bytes.indexOf(10, start)) {
        yield bytes.subarray(start, end)
        start = end + 1
      }
      rest = bytes.subarray(start)
    }
    if (rest.length > 0) yield rest
  } finally {
    closeSync(descriptor)
  }
}
