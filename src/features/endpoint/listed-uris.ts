/** The URIs under which one endpoint shows the resources of many connections (contract, 20.7). */

import type { JsonPath } from '../../schema/replace-values.ts'

const [scheme, appScheme] = ['postern://', 'ui://']
/** Parts of the longest path to a URI: messages[0].content[0].resource.uri. Past it: a text is no URI of a resource. */
const partsMax = 6

/** The URI that a list shows. MCP Apps refuse every scheme but `ui`, so theirs keep it. */
export function listedUri(connectionId: string, uri: string): string {
  const id = encodeURIComponent(connectionId)
  return uri.startsWith(appScheme) ? `${appScheme}${id}/${uri.slice(appScheme.length)}` : `${scheme}${id}/${uri}`
}

/** The connection and the URI that its server gave; undefined for a URI that no list shows. */
export function readListedUri(listed: string): { readonly connectionId: string; readonly uri: string } | undefined {
  const [, own, id = '', rest = ''] = /^(postern|ui):\/\/([^/]+)\/(.*)$/s.exec(listed) ?? []
  if (own === undefined) return undefined
  try {
    return { connectionId: decodeURIComponent(id), uri: own === 'ui' ? appScheme + rest : rest }
  } catch {
    return undefined
  }
}

/**
 * Whether a text within a result or a definition is a URI of a resource: of contents, of links and embedded resources
 * in content, and of the page that a tool's app shows. `whole`: its path, of which `from` parts lead to the result, or
 * to the definition.
 */
export function isResourceUri(whole: JsonPath, from = 0): boolean {
  const last = whole.at(-1)
  // Most texts: they get no path of their own.
  if (last !== 'uri' && last !== 'resourceUri' && last !== 'ui/resourceUri') return false
  if (whole.length - from > partsMax) return false
  const path = whole.slice(from)
  if (path[0] === '_meta') {
    return path.length === 2
      ? last === 'ui/resourceUri'
      : path.length === 3 && path[1] === 'ui' && last === 'resourceUri'
  }
  if (last !== 'uri') return false
  const [list] = path
  // contents[0].uri
  if (list === 'contents') return path.length === 3
  // content[0].uri, content[0].resource.uri; in messages[0], content is one block or a list of them
  const block = list === 'content' ? path.slice(2) : list === 'messages' && path[2] === 'content' ? path.slice(3) : []
  const fields = block.filter((part) => typeof part === 'string')
  return fields.length === 1 || (fields.length === 2 && fields[0] === 'resource')
}
