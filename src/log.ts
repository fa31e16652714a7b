/**
 * The log: one JSON object a line, on stderr. Fields are chosen where a line is written; credentials,
 * bodies and query strings are never among them.
 */

export type LogFields = Readonly<Record<string, string | number | boolean | null | undefined>>

export interface Log {
  info(event: string, fields?: LogFields): void
  warn(event: string, fields?: LogFields): void
  error(event: string, fields?: LogFields): void
}

export interface LogOptions {
  readonly write: (line: string) => void
  readonly now: () => Date
}

export function createLog({ write, now }: LogOptions): Log {
  const line =
    (level: string) =>
    (event: string, fields: LogFields = {}) =>
      write(`${escapeInvisible(JSON.stringify({ time: now().toISOString(), level, event, ...fields }))}\n`)
  return { info: line('info'), warn: line('warn'), error: line('error') }
}

/** What JSON leaves raw and a terminal or a viewer would act on: C1 controls, line separators, bidi overrides. */
function escapeInvisible(json: string): string {
  return json.replace(
    /[\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
