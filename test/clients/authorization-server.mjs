/**
 * An authorization server by oidc-provider, and a server of the official SDK that it guards, on free ports of this machine. Prints
 * their URLs as JSON when both listen. Users agree to everything. Run by Node, whose request objects oidc-provider wants.
 *
 *   node authorization-server.mjs USES MODE
 *
 * USES: requests for which the MCP server takes an access token, which is then to be refreshed. MODE: how a client is made: `register`, `by-hand`, or `document`.
 */

import { once } from 'node:events'
import { createServer } from 'node:http'
import { createMcpHandler, Server } from '@modelcontextprotocol/server'
import Provider from 'oidc-provider'

const [usesMax = '1000', mode = 'register'] = process.argv.slice(2)
const as = createServer((request, response) => answerAs(request, response)).listen(0, '127.0.0.1')
const mcp = createServer((request, response) => answerMcp(request, response)).listen(0, '127.0.0.1')
await Promise.all([once(as, 'listening'), once(mcp, 'listening')])
const issuer = `http://127.0.0.1:${as.address().port}`
const origin = `http://127.0.0.1:${mcp.address().port}`
const resource = `${origin}/mcp`

const provider = new Provider(issuer, {
  clientAuthMethods: ['none', 'client_secret_basic', 'client_secret_post'],
  clientDefaults: { token_endpoint_auth_method: 'none' },
  clients:
    mode === 'by-hand'
      ? [
          {
            client_id: 'by:hand',
            client_secret: 'a secret/with %',
            token_endpoint_auth_method: 'client_secret_basic',
            redirect_uris: [process.env.REDIRECT_URI],
            grant_types: ['authorization_code', 'refresh_token'],
          },
        ]
      : [],
  cookies: { keys: ['key'] },
  features: {
    ...(mode === 'document' && { clientIdMetadataDocument: { enabled: true, ack: 'draft-02' } }),
    devInteractions: { enabled: false },
    registration: { enabled: mode === 'register' },
    revocation: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => resource,
      useGrantedResource: () => true,
      getResourceServerInfo: () => ({
        scope: 'read write',
        audience: resource,
        accessTokenTTL: 3600,
        accessTokenFormat: 'opaque',
      }),
    },
  },
  findAccount: (_, accountId) => ({ accountId, claims: () => ({ sub: accountId }) }),
  // Its own refuses addresses of this machine.
  fetch: (url, options) => fetch(url, { ...options, dispatcher: undefined }),
  interactions: { url: (_, { uid }) => `/interaction/${uid}` },
  // As it does by itself (OpenID Connect Core, 11).
  issueRefreshToken: (_, client, code) => client.grantTypeAllowed('refresh_token') && code.scopes.has('offline_access'),
  pkce: { required: () => true },
  rotateRefreshToken: true,
})
const callback = provider.callback()
let refreshes = 0
/** Requests by access token. */
const uses = new Map()
provider.on('grant.success', ({ oidc }) => {
  if (oidc.params.grant_type === 'refresh_token') refreshes += 1
})
console.log(JSON.stringify({ issuer, resource }))

async function answerAs(request, response) {
  if (!request.url.startsWith('/interaction/')) return callback(request, response)
  const { prompt, params, session } = await provider.interactionDetails(request, response)
  if (prompt.name === 'login') {
    return provider.interactionFinished(request, response, { login: { accountId: 'grace' } })
  }
  const grant = new provider.Grant({ accountId: session.accountId, clientId: params.client_id })
  grant.addResourceScope(resource, params.scope)
  grant.addOIDCScope(params.scope)
  const consent = { grantId: await grant.save() }
  return provider.interactionFinished(request, response, { consent }, { mergeWithLastSubmission: true })
}

async function answerMcp(request, response) {
  const metadata = `${origin}/.well-known/oauth-protected-resource/mcp`
  if (`${origin}${request.url}` === metadata) {
    response.setHeader('content-type', 'application/json')
    return response.end(
      JSON.stringify({ resource, authorization_servers: [issuer], scopes_supported: ['read', 'write'] }),
    )
  }
  let body = ''
  for await (const chunk of request) body += chunk
  const sent = /^Bearer (.*)$/.exec(request.headers.authorization ?? '')?.[1]
  const token = sent === undefined ? undefined : await provider.AccessToken.find(sent)
  uses.set(sent, (uses.get(sent) ?? 0) + 1)
  if (token === undefined || token.isExpired || uses.get(sent) > Number(usesMax)) {
    response.writeHead(401, { 'www-authenticate': `Bearer resource_metadata="${metadata}"` })
    return response.end()
  }
  const { method, headers } = request
  const text = JSON.stringify({ user: token.accountId, scope: token.scope, refreshes })
  const answer = await handlerFor(text).fetch(
    new Request(`${origin}${request.url}`, { method, headers, ...(method === 'POST' && { body }) }),
  )
  response.writeHead(answer.status, Object.fromEntries(answer.headers))
  response.end(Buffer.from(await answer.arrayBuffer()))
}

/** A server of the official SDK with one tool, which says who calls. */
function handlerFor(text) {
  return createMcpHandler(() => {
    const server = new Server({ name: 'guarded', version: '1' }, { capabilities: { tools: {} } })
    server.setRequestHandler('tools/list', async () => ({ tools: [{ name: 'a', inputSchema: { type: 'object' } }] }))
    server.setRequestHandler('tools/call', async () => ({ content: [{ type: 'text', text }] }))
    return server
  })
}
