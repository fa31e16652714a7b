/** Where a command writes: results on stdout, everything about the work on stderr. */
export interface Terminal {
  readonly stdout: (text: string) => void
  readonly stderr: (text: string) => void
}

/** Text of somebody else's on one line, with nothing in it that a terminal would act on. */
export function printable(text: string): string {
  return text.replace(
    /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
