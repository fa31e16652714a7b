/** The log: a JSON object a line, on stderr. Never with credentials, bodies or query strings. */

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
