/** Looks up the operations of a path in the table of operations (`operations.ts`). */

import { type Operation, type OperationId, operationEntries } from '../operations.ts'

interface Route {
  readonly pattern: RegExp
  readonly operations: readonly { readonly id: OperationId; readonly operation: Operation }[]
}

/** One route per path, in the order of the table; the first match wins. */
const routes: readonly Route[] = [...new Set(operationEntries.map(([, { path }]) => path))].map((path) => ({
  pattern: patternOf(path),
  operations: operationEntries.flatMap(([id, operation]) => (operation.path === path ? [{ id, operation }] : [])),
}))

/** Matches the paths that the router accepts: with or without a trailing slash. */
function patternOf(template: string): RegExp {
  const source = template
    .replace(/[.]/g, '\\.')
    .replace(/\{\+\w+\}/g, '.+')
    .replace(/\{\w+\}/g, '[^/]+')
  return new RegExp(`^${source}/?$`)
}

function routeOf(path: string): Route | undefined {
  return routes.find(({ pattern }) => pattern.test(path))
}

/** The value of the `Allow` header for a path; undefined if no operation has that path. */
export function allowedMethods(path: string): string | undefined {
  return routeOf(path)
    ?.operations.map(({ operation }) => operation.method)
    .join(', ')
}

/** The operation of a request; undefined if there is none with this path and method. */
export function operationOf(method: string, path: string): OperationId | undefined {
  return routeOf(path)?.operations.find(({ operation }) => operation.method === method)?.id
}

/** The shape of errors for a path, for any method. */
export function errorsOf(path: string): Operation['errors'] {
  return routeOf(path)?.operations[0]?.operation.errors
}
