/** A thread that signs: tweetnacl takes 1.5 ms for a signature, which nobody else should wait for (`signers.ts`). */

import { setPriority } from 'node:os'
import { signatureOf } from '../auth/signature.ts'
import { signingPriority } from '../limits.ts'
import type { Signed, ToSign } from './signers.ts'

declare const self: Worker

try {
  // Of this thread alone, on Linux: whoever reads goes first where there are not enough cores.
  setPriority(0, signingPriority)
} catch {
  // A sandbox may forbid it, and signing goes on without.
}

self.onmessage = ({ data: { id, text, secretKey } }: MessageEvent<ToSign>) => {
  const signed: Signed = { id, signature: signatureOf(text, secretKey) }
  self.postMessage(signed)
}
