/** Looks up the operations of a path in the table of operations (`operations.ts`). */

import { type Operation, type OperationId, operationEntries } from '../operations.ts'

/** One route per path, in the order of the table; the first one with a method wins. */
const routes = [...new Set(operationEntries.map(([, { path }]) => path))].map((path) => ({
  pattern: patternOf(path),
  operations: operationEntries.flatMap(([id, operation]) => (operation.path === path ? [{ id, operation }] : [])),
}))

/** Matches the paths that the router accepts: with or without a trailing slash. `mcp` is no connection's id. */
function patternOf(template: string): RegExp {
  const source = template
    .replace(/[.]/g, '\\.')
    .replace(/\{\+\w+\}(?=.)/g, '[^/]+(?:/[^/]+)?')
    .replace(/\{\+\w+\}/g, '.+')
    .replace(/\{connectionId\}/g, '(?!mcp(?:/|$))[^/]+')
    .replace(/\{\w+\}/g, '[^/]+')
  return new RegExp(`^${source}/?$`)
}

/** The operations of a path. `…/releases` of a server may also be a server's own name. */
function operationsOf(path: string) {
  return routes.filter(({ pattern }) => pattern.test(path)).flatMap(({ operations }) => operations)
}

/** The value of the `Allow` header for a path; undefined if no operation has that path. */
export function allowedMethods(path: string): string | undefined {
  const methods = new Set(operationsOf(path).map(({ operation }) => operation.method))
  return methods.size === 0 ? undefined : [...methods].join(', ')
}

/** The operation of a request; undefined if there is none with this path and method. */
export function operationOf(method: string, path: string): OperationId | undefined {
  return operationsOf(path).find(({ operation }) => operation.method === method)?.id
}

/** The shape of errors for a path, for any method. */
export function errorsOf(path: string): Operation['errors'] {
  return operationsOf(path)[0]?.operation.errors
}
