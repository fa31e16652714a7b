/** Where a command writes: results on stdout, everything about the work on stderr. */
export interface Terminal {
  readonly stdout: (text: string) => void
  readonly stderr: (text: string) => void
  /** Whether the reader of stdout has closed it. */
  readonly isStdoutClosed: () => boolean
}
