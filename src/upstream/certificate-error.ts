/** The error for a server whose TLS certificate was not accepted, with the reason in words. */

import { handshakeBytesMax } from './handshake.ts'

const privateAuthority =
  'its certificate is not of an authority that this machine trusts: name that of a private one with --upstream-ca'
const certificateProblems: Readonly<Record<string, string>> = {
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another name',
  CERT_HAS_EXPIRED: 'its certificate has expired',
  CERT_NOT_YET_VALID: 'its certificate is not valid yet',
  DEPTH_ZERO_SELF_SIGNED_CERT: privateAuthority,
  SELF_SIGNED_CERT_IN_CHAIN: privateAuthority,
  UNABLE_TO_GET_ISSUER_CERT: privateAuthority,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: privateAuthority,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: privateAuthority,
  TOO_MANY_BYTES: `it sends more than ${handshakeBytesMax} bytes of certificates: shorten its chain`,
}

export class CertificateError extends Error {
  constructor(problem: Error | { readonly code: string } | null) {
    const { code = '' } = (problem ?? {}) as { code?: string }
    super(certificateProblems[code] ?? `its certificate was not accepted (${code || 'the TLS handshake failed'})`)
  }
}
