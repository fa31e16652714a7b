/** A text as one word of a command for a shell: names that strangers and callers choose may have quotes in them. */
export function shellWord(text: string): string {
  return /^[\w./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
}
