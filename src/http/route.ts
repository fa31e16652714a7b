/** Which operations a path has, by the one table of them. */

import { type Operation, type OperationId, operations } from '../operations.ts'

interface Route {
  readonly pattern: RegExp
  readonly operations: readonly { readonly id: OperationId; readonly operation: Operation }[]
}

/** One of each path, in the order of the table: the first that matches is the one. */
const routes: readonly Route[] = [...new Set(Object.values(operations).map(({ path }) => path))].map((path) => ({
  pattern: patternOf(path),
  operations: entries().flatMap(([id, operation]) => (operation.path === path ? [{ id, operation }] : [])),
}))

function entries(): [OperationId, Operation][] {
  return Object.entries(operations) as [OperationId, Operation][]
}

/** Of a path as the router takes it: with or without a slash at its end. */
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

/** The methods that a path answers to, as an `Allow` header has them; undefined for a path that does not exist. */
export function allowedMethods(path: string): string | undefined {
  return routeOf(path)
    ?.operations.map(({ operation }) => operation.method)
    .join(', ')
}

/** The operation of a request; undefined for a path that does not exist, or not with this method. */
export function operationOf(method: string, path: string): OperationId | undefined {
  return routeOf(path)?.operations.find(({ operation }) => operation.method === method)?.id
}

/** How errors about a path are answered, whatever the method. */
export function errorsOf(path: string): Operation['errors'] {
  return routeOf(path)?.operations[0]?.operation.errors
}
