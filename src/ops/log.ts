/**
 * The log: one JSON object a line, on stderr. The code that writes a line chooses its fields; credentials, bodies and
 * query strings are never among them.
 */

import { systemClock, timestampOf } from '../clock.ts'
import { escapeControlCharacters } from './escape-control.ts'

export type LogFields = Readonly<Record<string, string | number | boolean | null | undefined>>

export type Log = ReturnType<typeof createLog>

/** `always`: fields of every line. */
export function createLog(write: (line: string) => void, always = (): LogFields => ({})) {
  const line = (level: string) => (event: string, fields?: LogFields) => {
    const text = JSON.stringify({ time: timestampOf(systemClock), level, event, ...fields, ...always() })
    write(`${escapeControlCharacters(text)}\n`)
  }
  return { info: line('info'), warn: line('warn'), error: line('error') }
}
