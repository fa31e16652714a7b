/**
 * An MCP server that wants a sign-in, and its authorization server, in this process. It rotates refresh tokens, and
 * knows at every moment which of them a client that loses nothing must still have. It outlives the killed executable.
 */

import { createHash, randomUUID } from 'node:crypto'

/** What one sign-in led to: each generation is a pair of tokens. */
interface Line {
  generation: number
  /** The highest generation whose access token the MCP server has seen: it was not lost on the way. */
  seen: number
  uses: number
  /** The generation whose access token has expired, if any. */
  expired?: number
}

export interface StrictServers extends Disposable {
  readonly issuer: string
  readonly mcpUrl: (name: string) => string
  /** From now on no access token is good that was given before. */
  expireTokens(): void
  /** Signs somebody in at this authorization endpoint, and resolves with the query of the way back. */
  approve(url: URL): URLSearchParams
  /** What no client that keeps its promises does. */
  readonly broken: string[]
  readonly counted: { signIns: number; refreshes: number; calls: number }
}

/** `usesOfToken`: calls that an access token is good for, so that refreshes come often. */
export function strictServers(usesOfToken: number): StrictServers {
  const broken: string[] = []
  const counted = { signIns: 0, refreshes: 0, calls: 0 }
  const lines = new Map<string, Line>()
  const codes = new Map<string, { readonly challenge: string; isUsed: boolean }>()
  const tokensOf = (id: string, { generation }: Line) => ({
    access_token: `access.${id}.${generation}`,
    refresh_token: `refresh.${id}.${generation}`,
    token_type: 'Bearer',
  })
  const refused = (error: string) => Response.json({ error }, { status: 400 })

  async function token(request: Request): Promise<Response> {
    const form = new URLSearchParams(await request.text())
    if (form.get('grant_type') === 'authorization_code') {
      const code = codes.get(form.get('code') ?? '')
      const challenge = createHash('sha256')
        .update(form.get('code_verifier') ?? '')
        .digest('base64url')
      if (code === undefined || code.challenge !== challenge) broken.push('a code that nobody was given')
      else if (code.isUsed) broken.push('a code was used twice')
      if (code === undefined || code.isUsed) return refused('invalid_grant')
      code.isUsed = true
      const id = randomUUID()
      const line = { generation: 1, seen: 0, uses: 0 }
      lines.set(id, line)
      counted.signIns += 1
      return Response.json(tokensOf(id, line))
    }
    const [, id = '', sent = ''] = (form.get('refresh_token') ?? '').split('.')
    const line = lines.get(id)
    if (line === undefined) return refused('invalid_grant')
    // An answer that was lost with the process is forgiven. One whose token was used was not lost.
    if (Number(sent) < line.seen) {
      broken.push(`refresh token ${sent} came again, after the access token of ${line.seen} was used`)
      return refused('invalid_grant')
    }
    line.generation += 1
    line.uses = 0
    counted.refreshes += 1
    return Response.json(tokensOf(id, line))
  }

  async function mcp(request: Request, name: string): Promise<Response> {
    const { method, id } = (await request.json()) as { method: string; id?: unknown }
    const [, lineId = '', generation = ''] = (request.headers.get('authorization') ?? '').split('.')
    const line = lines.get(lineId)
    const isGood = line !== undefined && Number(generation) === line.generation
    if (isGood) line.seen = line.generation
    // Only calls use a token up: a greeting takes several requests.
    if (isGood && method === 'tools/call') line.uses += 1
    if (!isGood || line.uses > usesOfToken || line.generation === line.expired) {
      const metadata = `${server.url.origin}/.well-known/oauth-protected-resource/mcp/${name}`
      return new Response(null, {
        status: 401,
        headers: { 'www-authenticate': `Bearer resource_metadata="${metadata}"` },
      })
    }
    if (id === undefined) return new Response(null, { status: 202 })
    if (method === 'tools/call') counted.calls += 1
    const serverInfo = { name: 'strict', version: '1' }
    const tools = [{ name: 'use', inputSchema: { type: 'object' } }]
    const result = { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo, tools, content: [] }
    return Response.json({ jsonrpc: '2.0', id, result })
  }

  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const { pathname, origin } = new URL(request.url)
      if (pathname === '/token') return token(request)
      if (pathname === '/revoke') return new Response()
      if (pathname === '/register') return Response.json({ client_id: 'torture' }, { status: 201 })
      if (pathname === '/.well-known/oauth-authorization-server') {
        return Response.json({
          issuer: origin,
          authorization_endpoint: `${origin}/authorize`,
          token_endpoint: `${origin}/token`,
          registration_endpoint: `${origin}/register`,
          revocation_endpoint: `${origin}/revoke`,
          code_challenge_methods_supported: ['S256'],
          token_endpoint_auth_methods_supported: ['none'],
          authorization_response_iss_parameter_supported: true,
        })
      }
      const [, resource] = /^\/\.well-known\/oauth-protected-resource\/mcp\/([\w-]+)$/.exec(pathname) ?? []
      if (resource !== undefined) {
        return Response.json({ resource: `${origin}/mcp/${resource}`, authorization_servers: [origin] })
      }
      const [, name] = /^\/mcp\/([\w-]+)$/.exec(pathname) ?? []
      if (name === undefined) return new Response(null, { status: 404 })
      return request.method === 'POST' ? mcp(request, name) : new Response(null, { status: 405 })
    },
  })

  return {
    issuer: server.url.origin,
    expireTokens() {
      for (const line of lines.values()) line.expired = line.generation
    },
    mcpUrl: (name) => `${server.url.origin}/mcp/${name}`,
    approve({ searchParams }) {
      const code = randomUUID()
      codes.set(code, { challenge: searchParams.get('code_challenge') ?? '', isUsed: false })
      return new URLSearchParams({ code, state: searchParams.get('state') ?? '', iss: server.url.origin })
    },
    broken,
    counted,
    [Symbol.dispose]: () => void server.stop(true),
  }
}
