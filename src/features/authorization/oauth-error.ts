/** Errors of OAuth's own endpoints (RFC 6749, 5.2; RFC 7591, 3.2.2): `{error, error_description}`. */

import { noStoreJson } from '../../http/respond.ts'

export type OAuthErrorCode =
  | 'invalid_request'
  | 'invalid_client'
  | 'invalid_grant'
  | 'unsupported_grant_type'
  | 'invalid_target'
  | 'invalid_redirect_uri'
  | 'invalid_client_metadata'

/** Becomes the response of an OAuth endpoint. The description is for the client's developer, in ASCII. */
export class OAuthError extends Error {
  override readonly name = 'OAuthError'
  readonly code: OAuthErrorCode

  constructor(code: OAuthErrorCode, description: string) {
    super(description)
    this.code = code
  }
}

export function oauthErrorResponse({ code, message }: OAuthError): Response {
  return new Response(JSON.stringify({ error: code, error_description: message }), {
    status: code === 'invalid_client' ? 401 : 400,
    headers: noStoreJson,
  })
}
