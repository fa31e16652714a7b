/** `POST /tokens` (spec 4.1) and the public keys that verify what it mints. */

import { bearer } from '@elysiajs/bearer'
import { Elysia } from 'elysia'
import type { Authenticator } from '../auth/authenticate.ts'
import { confirmCredential } from '../auth/credential.ts'
import { signToken } from '../auth/service-token.ts'
import { publishedKeys } from '../auth/signing-keys.ts'
import { readJsonBody } from '../http/body.ts'
import { refuseQuery } from '../http/query.ts'
import { jsonResponse } from '../http/respond.ts'
import { jwksMaxAgeSeconds } from '../limits.ts'
import type { CreateTokenResponse } from '../model/token.ts'
import { mint } from './mint.ts'

export interface TokenDeps {
  readonly authenticator: Authenticator
  readonly issuer: string
  readonly now: () => number
}

export function tokenRoutes({ authenticator, issuer, now }: TokenDeps) {
  return new Elysia({ name: 'tokens' })
    .use(bearer())
    .post(
      '/tokens',
      async ({ request, bearer }) => {
        const credential = confirmCredential(request.headers.get('authorization'), bearer) // 401
        const { caller, registry } = await authenticator.authenticate(credential) // 401
        refuseQuery(request.url) // 400
        const body = await readJsonBody(request) // 400
        const nowSeconds = Math.floor(now() / 1000)
        const { active } = await authenticator.keys()
        const sign = (claims: Parameters<typeof signToken>[0]) => signToken(claims, active)
        const { token, expiresAt } = await mint(body, { caller, registry, issuer, nowSeconds, sign }) // 400, 403
        const answer: CreateTokenResponse = { token, expiresAt }
        return jsonResponse(JSON.stringify(answer), { 'cache-control': 'no-store' })
      },
      // The framework's own reading takes a body it cannot parse for no body at all; ours is `readJsonBody`.
      { parse: 'none' },
    )
    .get('/.well-known/jwks.json', async () => {
      const jwks = { keys: publishedKeys(await authenticator.keys(), Math.floor(now() / 1000)) }
      return jsonResponse(JSON.stringify(jwks), { 'cache-control': `public, max-age=${jwksMaxAgeSeconds}` })
    })
}
