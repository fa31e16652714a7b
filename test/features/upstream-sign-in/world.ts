/** An MCP server that wants a sign-in, and its authorization server: as strict as the RFCs, and as wrong as a test says. */

import { createHash } from 'node:crypto'
import {
  type Upstream,
  UpstreamError,
  type UpstreamRequest,
  type UpstreamResponse,
} from '../../../src/upstream/upstream.ts'
import { issuer as base } from '../../support/platform.ts'

export const mcpUrl = 'https://mcp.example.com/team/mcp'
export const issuer = 'https://as.example.com'
export const redirectUri = `${base}/oauth/callback`

type Answer = Partial<Omit<UpstreamResponse, 'body'>> & { readonly json?: unknown; readonly body?: string }

export interface Servers {
  readonly upstream: Upstream
  /** Every request, as `METHOD URL`. */
  readonly seen: string[]
  /** The forms that the token endpoint got, and the others. */
  readonly forms: { readonly url: string; readonly form: URLSearchParams; readonly authorization: string | undefined }[]
  readonly registered: Record<string, unknown>[]
  /** Tokens sent to the MCP server. */
  readonly tokensSeen: (string | undefined)[]
  /** Access tokens that the MCP server takes. */
  readonly good: Set<string>
  /** Answers in place of the usual ones, by URL without query. */
  readonly instead: Record<string, (request: UpstreamRequest) => Answer | Promise<Answer>>
  readonly metadata: Record<string, unknown>
  readonly resource: Record<string, unknown>
  challenge: string | undefined
  /** Seconds; undefined: none is told. */
  expiresIn: number | undefined
  /** Whether refresh tokens are given, and rotate. */
  refreshes: 'rotating' | 'lasting' | 'none'
  /** The authorization endpoint: the query of the redirect that it sends the browser back with. */
  authorize(url: URL): URLSearchParams
}

export function createServers(): Servers {
  const codes = new Map<string, { readonly challenge: string; readonly clientId: string; readonly resource: string }>()
  const refreshTokens = new Set<string>()
  let count = 0

  function tokens(): object {
    count += 1
    servers.good.add(`access-secret-${count}`)
    if (servers.refreshes !== 'none') refreshTokens.add(`refresh-secret-${count}`)
    return {
      access_token: `access-secret-${count}`,
      token_type: 'bearer',
      ...(servers.expiresIn !== undefined && { expires_in: servers.expiresIn }),
      ...(servers.refreshes === 'rotating' && { refresh_token: `refresh-secret-${count}` }),
      ...(servers.refreshes === 'lasting' && { refresh_token: `refresh-secret-${count}` }),
    }
  }

  function token(form: URLSearchParams): Answer {
    const refuse = (error: string): Answer => ({ status: 400, json: { error, error_description: 'as told' } })
    if (form.get('resource') === null) return refuse('invalid_target')
    if (form.get('grant_type') === 'refresh_token') {
      const sent = form.get('refresh_token') ?? ''
      if (!refreshTokens.has(sent)) return refuse('invalid_grant')
      if (servers.refreshes === 'rotating') refreshTokens.delete(sent)
      const { refresh_token, ...rest } = tokens() as { refresh_token?: string }
      return { json: servers.refreshes === 'rotating' ? { ...rest, refresh_token } : rest }
    }
    const code = codes.get(form.get('code') ?? '')
    codes.delete(form.get('code') ?? '')
    const verifier = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url')
    if (code === undefined || code.challenge !== verifier || code.resource !== form.get('resource'))
      return refuse('invalid_grant')
    if (form.get('redirect_uri') !== redirectUri) return refuse('invalid_grant')
    return { json: tokens() }
  }

  function mcp({ headers, body }: UpstreamRequest): Answer {
    const sent = headers['authorization']?.replace(/^Bearer /, '')
    servers.tokensSeen.push(sent)
    if (sent === undefined || !servers.good.has(sent)) {
      return { status: 401, headers: servers.challenge === undefined ? {} : { 'www-authenticate': servers.challenge } }
    }
    const { id, method } = JSON.parse(String(body)) as { id?: unknown; method: string }
    if (id === undefined) return { status: 202 }
    const result =
      method === 'initialize'
        ? { protocolVersion: '2025-11-25', capabilities: {}, serverInfo: { name: 'guarded', version: '1' } }
        : { content: [{ type: 'text', text: `done with ${sent}` }] }
    return { json: { jsonrpc: '2.0', id, result } }
  }

  async function answer(request: UpstreamRequest): Promise<Answer> {
    const { method = 'POST', url, body, headers } = request
    servers.seen.push(`${method} ${url}`)
    const place = url.split('?')[0] ?? ''
    const other = servers.instead[place]
    if (other !== undefined) return other(request)
    if (place === mcpUrl)
      return method === 'DELETE' ? { status: 200 } : mcp({ ...request, body: Buffer.from(body ?? '').toString() })
    if (place === 'https://mcp.example.com/.well-known/oauth-protected-resource/team/mcp')
      return { json: servers.resource }
    if (place === `${issuer}/.well-known/oauth-authorization-server`) return { json: servers.metadata }
    if (place === `${issuer}/register`) {
      servers.registered.push(JSON.parse(String(body)) as Record<string, unknown>)
      return {
        status: 201,
        json: { client_id: `client-${servers.registered.length}`, token_endpoint_auth_method: 'none' },
      }
    }
    if (place === `${issuer}/token` || place === `${issuer}/revoke`) {
      const form = new URLSearchParams(String(body))
      servers.forms.push({ url: place, form, authorization: headers['authorization'] })
      return place.endsWith('/revoke') ? { json: {} } : token(form)
    }
    return { status: 404 }
  }

  const servers: Servers = {
    seen: [],
    forms: [],
    registered: [],
    tokensSeen: [],
    good: new Set(),
    instead: {},
    metadata: {
      issuer,
      authorization_endpoint: `${issuer}/authorize`,
      token_endpoint: `${issuer}/token`,
      registration_endpoint: `${issuer}/register`,
      revocation_endpoint: `${issuer}/revoke`,
      code_challenge_methods_supported: ['S256'],
      token_endpoint_auth_methods_supported: ['none'],
      authorization_response_iss_parameter_supported: true,
    },
    resource: { resource: mcpUrl, authorization_servers: [issuer], scopes_supported: ['read', 'write'] },
    challenge: undefined,
    expiresIn: 3600,
    refreshes: 'rotating',
    authorize(url) {
      const { searchParams } = url
      count += 1
      const code = `code-${count}`
      codes.set(code, {
        challenge: searchParams.get('code_challenge') ?? '',
        clientId: searchParams.get('client_id') ?? '',
        resource: searchParams.get('resource') ?? '',
      })
      return new URLSearchParams({ code, state: searchParams.get('state') ?? '', iss: issuer })
    },
    upstream: {
      async send(request) {
        if (request.url.includes('down.example.com')) throw new UpstreamError('down', 'connection refused or reset')
        const { status = 200, headers = {}, json, body } = await answer(request)
        const text = body ?? (json === undefined ? undefined : JSON.stringify(json))
        return {
          status,
          headers: { ...(json !== undefined && { 'content-type': 'application/json' }), ...headers },
          body: text === undefined ? undefined : (Buffer.from(text) as Uint8Array<ArrayBuffer>),
        }
      },
    },
  }
  return servers
}
