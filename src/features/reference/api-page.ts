/** Renders the OpenAPI document as an HTML page, the API reference. */

import { escapeHtml as text } from '../../http/html.ts'
import type { Content, Described, OpenApiDocument } from './document.ts'
import { contentsList, framed, type PageList } from './frame.ts'

/** `basePath`: the path of the base URL, without a trailing slash, not escaped. */
export function apiPage(document: OpenApiDocument, basePath: string, pages: PageList): string {
  const { info, servers, paths, components } = document
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method, path, ...operation })),
  )
  const baseUrl = servers[0]?.url ?? ''
  const contents = groups.map(([name, begin]) => ({
    name,
    headings: operations
      .filter(({ path }) => groups.find(([, one]) => one.test(path))?.[1] === begin)
      .map(({ operationId, summary }) => ({ id: operationId, title: text(summary) })),
  }))
  const sections = operations.map((operation) => section(operation, baseUrl))
  const schemas = Object.entries(components.schemas).map(
    ([name, schema]) =>
      `<details id="${name}"><summary><code>${name}</code></summary><pre>${text(JSON.stringify(schema, null, 2))}</pre></details>`,
  )
  const body = `<h1>API reference</h1>
<p>${text(info.description)}</p>
<p>Base URL <code>${text(baseUrl)}</code>. Send an API key or a service token as
<code>Authorization: Bearer …</code>. The same as a document: <a href="${text(basePath)}/openapi.json"><code>openapi.json</code></a>.</p>
${contentsList(...contents, { name: 'Shapes', headings: [{ id: 'schemas', title: 'Schemas' }] })}
${sections.join('\n')}
<h2 id="schemas">Schemas</h2>
${schemas.join('\n')}`
  const title = `API reference - ${info.title} ${info.version}`
  return framed({ title, basePath: text(basePath), body, pages, href: '/docs/api' })
}

/** Each operation, for the search. */
export function apiIndex({ paths }: OpenApiDocument) {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { operationId, summary, description }]) => ({
      title: 'API reference',
      part: summary,
      href: `/docs/api#${operationId}`,
      text: `${operationId} ${method.toUpperCase()} ${path} ${description}`,
    })),
  )
}

/** The groups of the contents, by the beginning of a path; an operation is in the first that fits. */
const groups: readonly (readonly [name: string, begin: RegExp])[] = [
  ['Tokens', /^\/(?:tokens|me$)/],
  ['Connections and calls', /^\/connect/],
  ['Servers', /^\/(?:servers|v0\.1)/],
  ['Namespaces', /^\/namespaces/],
  ['Organizations', /^\/organizations/],
  ['API keys and grants', /^\/(?:me\/|api-keys|grants)/],
  ['What happened', /^\/(?:calls|audit)/],
  ['The server itself', /./],
]

type Placed = Described & { readonly method: string; readonly path: string }

function section(operation: Placed, baseUrl: string): string {
  const { operationId, method, path, summary, description, parameters = [], requestBody, responses } = operation
  const rows = parameters.map(
    (one) =>
      `<tr><td><code>${text(one.name)}</code></td><td>${text(one.in)}</td><td>${words(one.description)}</td></tr>`,
  )
  const answers = Object.entries(responses).map(
    ([status, { description: what, content }]) =>
      `<tr><td>${status}</td><td>${words(what)}</td><td>${reference(content)}</td></tr>`,
  )
  return `<h2 id="${text(operationId)}">${text(summary)}</h2>
<p><code><span class="method">${text(method)}</span> ${text(path)}</code></p>
<p>${words(description)}</p>
<pre class="command">${text(exampleOf(operation, baseUrl))}</pre>
${rows.length > 0 ? `<div class="wide"><table><tr><th>Parameter</th><th>In</th><th>Meaning</th></tr>${rows.join('')}</table></div>` : ''}
${requestBody === undefined ? '' : `<p>Body: ${reference(requestBody.content)}</p>`}
<div class="wide"><table><tr><th>Status</th><th>Meaning</th><th>Body</th></tr>${answers.join('')}</table></div>`
}

const exampleParts: Readonly<Record<string, string>> = {
  namespace: 'acme',
  connectionId: 'notes',
  tool: 'notes.search',
  qualifiedName: 'acme%2Fnotes',
}

function exampleOf({ method, path, requestBody, security }: Placed, baseUrl: string): string {
  const target = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => exampleParts[name] ?? name)
  const parts = [`curl -s${method === 'get' ? '' : ` -X ${method.toUpperCase()}`} '${baseUrl}${target}'`]
  // An empty list means that the operation needs no credential.
  const [scheme] = security ?? [{ bearer: [] }]
  if (scheme !== undefined && 'bearer' in scheme) parts.push(`-H "Authorization: Bearer $KEY"`)
  const { example } = requestBody?.content['application/json'] ?? {}
  if (example !== undefined) parts.push(`-H 'Content-Type: application/json'`, `-d '${JSON.stringify(example)}'`)
  return parts.join(' \\\n  ')
}

/** Links to the schema, or to its alternatives. */
function reference(content: Content | undefined): string {
  if (content === undefined) return 'no body'
  if (content['text/event-stream'] !== undefined) return 'events'
  const { $ref, anyOf } = (content['application/json']?.schema ?? {}) as { $ref?: string; anyOf?: { $ref?: string }[] }
  const names = [$ref, ...(anyOf ?? []).map((one) => one.$ref)].flatMap((ref) => ref?.split('/').at(-1) ?? [])
  return names.map((name) => `<a href="#${text(name)}"><code>${text(name)}</code></a>`).join(' or ')
}

/** Text as HTML, with `…` as code. */
function words(description: string): string {
  return text(description).replaceAll(/`([^`]+)`/g, '<code>$1</code>')
}
