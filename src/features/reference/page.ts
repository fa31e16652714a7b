/** The reference page: the OpenAPI document as HTML that needs no script, no font and no network. */

import { createHash } from 'node:crypto'

const style = `
:root { color-scheme: light dark; }
body { font: 16px/1.55 system-ui, sans-serif; max-width: 50rem; margin: 3rem auto; padding: 0 1rem; }
body { overflow-wrap: anywhere; }
h2 { margin-top: 3rem; font-size: 1.2rem; }
code, pre { font: 13px/1.5 ui-monospace, monospace; }
pre { overflow: auto; padding: .8rem; border: 1px solid #8885; border-radius: 6px; overflow-wrap: normal; }
table { border-collapse: collapse; width: 100%; }
td, th { text-align: left; vertical-align: top; padding: .35rem .8rem .35rem 0; border-bottom: 1px solid #8883; }
nav ul { columns: 18rem; padding-left: 1.2rem; }
.method { font-weight: 700; text-transform: uppercase; }
summary { cursor: pointer; }
`
/** Nothing but this style: no script runs, nothing is loaded, nobody frames the page. */
export const docsPolicy =
  `default-src 'none'; style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'; ` +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

interface Document {
  readonly info: { readonly title: string; readonly version: string; readonly description: string }
  readonly servers: readonly { readonly url: string }[]
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly schemas: Readonly<Record<string, object>> }
}

interface Operation {
  readonly operationId: string
  readonly security?: readonly object[]
  readonly summary: string
  readonly description: string
  readonly parameters?: readonly { readonly name: string; readonly in: string; readonly description: string }[]
  readonly requestBody?: { readonly content: Content }
  readonly responses: Readonly<Record<string, { readonly description: string; readonly content: Content }>>
}

type Content = Readonly<Record<string, { readonly schema: object; readonly example?: object }>>

export function docsPage(document: object): string {
  const { info, servers, paths, components } = document as Document
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method, path, ...operation })),
  )
  const baseUrl = servers[0]?.url ?? ''
  const contents = operations.map(
    ({ operationId, summary }) => `<li><a href="#${text(operationId)}">${text(summary)}</a></li>`,
  )
  const sections = operations.map((operation) => section(operation, baseUrl))
  const schemas = Object.entries(components.schemas).map(
    ([name, schema]) =>
      `<details id="${name}"><summary><code>${name}</code></summary><pre>${text(JSON.stringify(schema, null, 2))}</pre></details>`,
  )
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${text(info.title)} ${text(info.version)}</title><style>${style}</style></head><body><main>
<h1>${text(info.title)} ${text(info.version)}</h1>
<p>${text(info.description)}</p>
<p>Base URL <code>${text(baseUrl)}</code>. Send an API key or a service token as
<code>Authorization: Bearer …</code>. The same as a document: <a href="openapi.json"><code>openapi.json</code></a>.</p>
<nav aria-label="Contents"><ul>
${contents.join('\n')}
<li><a href="#schemas">Schemas</a></li>
</ul></nav>
${sections.join('\n')}
<h2 id="schemas">Schemas</h2>
${schemas.join('\n')}
</main></body></html>
`
}

interface Placed extends Operation {
  readonly method: string
  readonly path: string
}

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
<pre>${text(exampleOf(operation, baseUrl))}</pre>
${rows.length > 0 ? `<table><tr><th>Parameter</th><th>In</th><th>Meaning</th></tr>${rows.join('')}</table>` : ''}
${requestBody === undefined ? '' : `<p>Body: ${reference(requestBody.content)}</p>`}
<table><tr><th>Status</th><th>Meaning</th><th>Body</th></tr>${answers.join('')}</table>`
}

/** What stands for the parameters of a path. */
const exampleParts: Readonly<Record<string, string>> = {
  namespace: 'acme',
  connectionId: 'notes',
  tool: 'notes.search',
  qualifiedName: 'acme%2Fnotes',
}

/** A line to paste. */
function exampleOf({ method, path, requestBody, security }: Placed, baseUrl: string): string {
  const target = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => exampleParts[name] ?? name)
  const parts = [`curl -s${method === 'get' ? '' : ` -X ${method.toUpperCase()}`} '${baseUrl}${target}'`]
  // An empty list says that there is none.
  if (security?.length !== 0) parts.push(`-H "Authorization: Bearer $KEY"`)
  const { example } = requestBody?.content['application/json'] ?? {}
  if (example !== undefined) parts.push(`-H 'Content-Type: application/json'`, `-d '${JSON.stringify(example)}'`)
  return parts.join(' \\\n  ')
}

/** The schema's name, or the names of those that it may be. */
function reference(content: Content): string {
  const { $ref, anyOf } = (content['application/json']?.schema ?? {}) as { $ref?: string; anyOf?: { $ref?: string }[] }
  const names = [$ref, ...(anyOf ?? []).map((one) => one.$ref)].flatMap((ref) => ref?.split('/').at(-1) ?? [])
  return names.map((name) => `<a href="#${text(name)}"><code>${text(name)}</code></a>`).join(' or ')
}

/** Text with code in backticks. */
function words(description: string): string {
  return text(description).replaceAll(/`([^`]+)`/g, '<code>$1</code>')
}

function text(plain: string): string {
  return plain.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}
