/** The functions that answer requests. */

import type { OperationId } from '../operations.ts'

/** Answers the requests of one operation. The router turns every error that a handler throws into a response. */
export type Handler = (request: Request) => Promise<Response> | Response

export type Handlers = { readonly [Id in OperationId]: Handler }

/** A handler before it has its dependencies. */
export type Answer<Deps> = (deps: Deps, request: Request) => Promise<Response> | Response

/** Makes handlers of functions that share dependencies. */
export function handlersOf<Deps, Id extends OperationId>(answers: Record<Id, Answer<Deps>>) {
  const all = Object.entries<Answer<Deps>>(answers)
  return (deps: Deps) => {
    const handlers = all.map(([id, answer]) => [id, (request: Request) => answer(deps, request)])
    return Object.fromEntries(handlers) as Pick<Handlers, Id>
  }
}
