/** The worker thread that signs tokens: a signature takes 1.5 ms, too long for the event loop (`signers.ts`). */

import { signatureOf } from '../../auth/signature.ts'
import type { SigningReply, SigningRequest } from './signers.ts'

declare const self: Worker

self.onmessage = ({ data: { id, text, secretKey } }: MessageEvent<SigningRequest>) => {
  self.postMessage({ id, signature: signatureOf(text, secretKey) } satisfies SigningReply)
}
