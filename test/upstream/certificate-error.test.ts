/** What is said of a certificate that was not accepted. */

import { expect, test } from 'bun:test'
import { CertificateError } from '../../src/upstream/handshake.ts'

const said = (code: string) => new CertificateError(Object.assign(new Error('x'), { code })).message

test('a known problem in words, another by its code, and one without in general', () => {
  expect(said('CERT_HAS_EXPIRED')).toBe('its certificate has expired')
  expect(said('DEPTH_ZERO_SELF_SIGNED_CERT')).toContain('--upstream-ca')
  expect(said('CERT_REVOKED')).toBe('its certificate was not accepted (CERT_REVOKED)')
  for (const problem of [null, new Error('x')])
    expect(new CertificateError(problem).message).toBe('its certificate was not accepted (the TLS handshake failed)')
})
