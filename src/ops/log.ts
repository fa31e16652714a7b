/**
 * The log: one JSON object a line, on stderr. The code that writes a line chooses its fields; credentials, bodies and
 * query strings are never among them.
 */

import { systemClock, timestampOf } from '../clock.ts'
import { escapeControlCharacters } from './escape-control.ts'

export type LogFields = Readonly<Record<string, string | number | boolean | null | undefined>>

export interface Log {
  info(event: string, fields?: LogFields): void
  warn(event: string, fields?: LogFields): void
  error(event: string, fields?: LogFields): void
}

export interface LogOptions {
  readonly write: (line: string) => void
  /** Fields of every line. */
  readonly always?: () => LogFields
}

export function createLog({ write, always = () => ({}) }: LogOptions): Log {
  const line =
    (level: string) =>
    (event: string, fields: LogFields = {}) =>
      write(
        `${escapeControlCharacters(JSON.stringify({ time: timestampOf(systemClock), level, event, ...fields, ...always() }))}\n`,
      )
  return { info: line('info'), warn: line('warn'), error: line('error') }
}
