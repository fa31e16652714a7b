/** Where a command writes: results on stdout, everything about the work on stderr. */
export interface Terminal {
  readonly stdout: (text: string) => void
  readonly stderr: (text: string) => void
}
