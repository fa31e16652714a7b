/** Errors for a 404, whose own message does not name what is missing. */

import type { RequestOptions } from './api-client.ts'

export function noNamespace(name: string): RequestOptions {
  return { missing: `there is no namespace ${name}, or you may not change it: see \`postern namespace list\`` }
}

export function noServer(name: string): RequestOptions {
  return { missing: `there is no server ${name}, or you may not change it: see \`postern server search\`` }
}

export function noConnection(namespace: string, id: string): RequestOptions {
  const what = `there is no connection ${id} in ${namespace}, or you have no access to it`
  return { missing: `${what}: see \`postern connection list\`` }
}
