/** The reference page: the OpenAPI document as HTML that needs no script, no font and no network. */

import { createHash } from 'node:crypto'

const style = `
:root { color-scheme: light dark; }
body { font: 16px/1.55 system-ui, sans-serif; max-width: 50rem; margin: 3rem auto; padding: 0 1rem; }
h2 { margin-top: 3rem; font-size: 1.2rem; }
code, pre { font: 13px/1.5 ui-monospace, monospace; }
pre { overflow: auto; padding: .8rem; border: 1px solid #8885; border-radius: 6px; }
table { border-collapse: collapse; width: 100%; }
td, th { text-align: left; vertical-align: top; padding: .35rem .8rem .35rem 0; border-bottom: 1px solid #8883; }
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
  readonly summary: string
  readonly description: string
  readonly parameters?: readonly { readonly name: string; readonly in: string; readonly description: string }[]
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: object }>> }
  readonly responses: Readonly<
    Record<
      string,
      { readonly description: string; readonly content: Readonly<Record<string, { readonly schema: object }>> }
    >
  >
}

export function docsPage(document: object): string {
  const { info, servers, paths, components } = document as Document
  const sections = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => section(method, path, operation)),
  )
  const schemas = Object.entries(components.schemas).map(
    ([name, schema]) =>
      `<details id="${name}"><summary><code>${name}</code></summary><pre>${text(JSON.stringify(schema, null, 2))}</pre></details>`,
  )
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${text(info.title)} ${text(info.version)}</title><style>${style}</style></head><body>
<h1>${text(info.title)} ${text(info.version)}</h1>
<p>${text(info.description)}</p>
<p>Base URL <code>${text(servers[0]?.url ?? '')}</code>. Send an API key or a service token as
<code>Authorization: Bearer …</code>. The same as a document: <a href="openapi.json"><code>openapi.json</code></a>.</p>
${sections.join('\n')}
<h2>Schemas</h2>
${schemas.join('\n')}
</body></html>
`
}

function section(method: string, path: string, operation: Operation): string {
  const { summary, description, parameters = [], requestBody, responses } = operation
  const rows = parameters.map(
    (one) =>
      `<tr><td><code>${text(one.name)}</code></td><td>${text(one.in)}</td><td>${words(one.description)}</td></tr>`,
  )
  const answers = Object.entries(responses).map(
    ([status, { description: what, content }]) =>
      `<tr><td>${status}</td><td>${words(what)}</td><td>${reference(content)}</td></tr>`,
  )
  return `<h2>${text(summary)}</h2>
<p><code><span class="method">${text(method)}</span> ${text(path)}</code></p>
<p>${words(description)}</p>
${rows.length > 0 ? `<table><tr><th>Parameter</th><th>In</th><th></th></tr>${rows.join('')}</table>` : ''}
${requestBody === undefined ? '' : `<p>Body: ${reference(requestBody.content)}</p>`}
<table><tr><th>Status</th><th></th><th>Body</th></tr>${answers.join('')}</table>`
}

function reference(content: Readonly<Record<string, { readonly schema: object }>>): string {
  const schema = content['application/json']?.schema as { $ref?: string } | undefined
  const name = schema?.$ref?.split('/').at(-1) ?? ''
  return `<a href="#${text(name)}"><code>${text(name)}</code></a>`
}

/** Text with code in backticks. */
function words(description: string): string {
  return text(description).replaceAll(/`([^`]+)`/g, '<code>$1</code>')
}

function text(plain: string): string {
  return plain.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}
