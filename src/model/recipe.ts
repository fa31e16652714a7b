/** The configuration files by which clients find an endpoint, for each client (contract, 20.14). */

import { type Static, Type } from '@sinclair/typebox'
import { closedObject, oneOf } from '../schema/shapes.ts'
import { shellWord } from './shell-word.ts'

export const clientNames = [
  ...(['vscode', 'cursor', 'claude-code', 'codex', 'windsurf', 'cline'] as const),
  ...(['copilot-managed', 'claude-managed', 'vscode-managed', 'codex-managed'] as const),
] as const
export type ClientName = (typeof clientNames)[number]

export const Recipe = closedObject({
  client: oneOf(clientNames),
  /** `managed`: for an administrator, who allows this platform alone. */
  kind: oneOf(['config', 'managed']),
  file: Type.String(),
  format: oneOf(['json', 'toml']),
  content: Type.String(),
  /** Installs it in an editor on this machine. */
  link: Type.Optional(Type.String()),
  command: Type.Optional(Type.String()),
})
export type Recipe = Static<typeof Recipe>
export const RecipeList = closedObject({ url: Type.String(), clients: Type.Array(Recipe) })
export type RecipeList = Static<typeof RecipeList>

/** An endpoint, and the name that clients give it. */
export interface RecipeOf {
  readonly base: string
  readonly namespace: string
  readonly url: string
  readonly name: string
}

/** The name that clients give an endpoint if nobody chose another. */
export const endpointName = (namespace: string, view: string | undefined): string =>
  view === undefined ? namespace : `${namespace}-${view}`

/** A name for a shell. One that begins like an option is none behind `--`. */
const operandOf = (name: string) => (name.startsWith('-') ? `-- ${shellWord(name)}` : shellWord(name))

/** The recipe of a client. None holds a credential: the client signs in by itself. */
export function recipeOf(client: ClientName, { base, namespace, url, name }: RecipeOf): Recipe {
  const kind = client.endsWith('-managed') ? 'managed' : 'config'
  const toml = (file: string, content: string, more: Partial<Recipe> = {}): Recipe => ({
    ...{ client, kind, file, format: 'toml', content, ...more },
  })
  const json = (file: string, content: object, more: Partial<Recipe> = {}) =>
    toml(file, `${JSON.stringify(content, null, 2)}\n`, { format: 'json', ...more })
  const table = `[mcp_servers.${/^[A-Za-z0-9_-]+$/.test(name) ? name : JSON.stringify(name)}]`
  const allowed = { allowedMcpServers: [{ serverUrl: `${base}/connect/*` }] }
  switch (client) {
    case 'vscode': {
      const entry = { type: 'http', url }
      const link = `vscode:mcp/install?${encodeURIComponent(JSON.stringify({ name, ...entry }))}`
      return json('.vscode/mcp.json', { servers: { [name]: entry } }, { link })
    }
    case 'cursor': {
      const query = new URLSearchParams({ name, config: Buffer.from(JSON.stringify({ url })).toString('base64') })
      const link = `cursor://anysphere.cursor-deeplink/mcp/install?${query}`
      return json('~/.cursor/mcp.json', { mcpServers: { [name]: { url } } }, { link })
    }
    case 'claude-code':
      return json(
        '.mcp.json',
        { mcpServers: { [name]: { type: 'http', url } } },
        { command: `claude mcp add --transport http ${operandOf(name)} ${shellWord(url)}` },
      )
    case 'codex':
      return toml('~/.codex/config.toml', `${table}\nurl = ${JSON.stringify(url)}\n`, {
        // A name that looks like a flag must be last.
        command: name.startsWith('-')
          ? `codex mcp add --url ${shellWord(url)} ${operandOf(name)}`
          : `codex mcp add ${operandOf(name)} --url ${shellWord(url)}`,
      })
    case 'windsurf':
      return json('~/.codeium/windsurf/mcp_config.json', { mcpServers: { [name]: { serverUrl: url } } })
    case 'cline':
      return json('cline_mcp_settings.json', { mcpServers: { [name]: { type: 'streamableHttp', url } } })
    case 'copilot-managed':
      return json('managed-settings.json', allowed)
    case 'claude-managed':
      return json('managed-settings.json', { ...allowed, allowManagedMcpServersOnly: true })
    case 'vscode-managed':
      return json('policy or settings.json', {
        'chat.mcp.allowedServers': [{ url: `${base}/connect/*` }],
        'chat.mcp.gallery.serviceUrl': `${base}/registry/${namespace}`,
      })
    case 'codex-managed':
      return toml('requirements.toml', `${table}\nidentity = { url = ${JSON.stringify(url)} }\n`)
  }
}
