/**
 * The routes, from the table of operations to the framework: the only file that knows Elysia and its bearer plugin, and
 * what they do unasked.
 */

import { bearer } from '@elysiajs/bearer'
import { Elysia } from 'elysia'
import { notFound, PlatformError, unauthorized } from '../errors.ts'
import { type Operation, type OperationId, operations } from '../operations.ts'
import { contradictsBearer } from './credential.ts'
import { pathOf } from './path.ts'
import { allowedMethods, errorsOf } from './route.ts'

/** Answers one operation. What it throws is answered by the router. */
export type Handler = (request: Request) => Promise<Response> | Response

/** Every operation has one. */
export type Handlers = { readonly [Id in OperationId]: Handler }

export type ErrorShape = Operation['errors']

/** The answer to what was thrown, in the shape of the operation's errors. */
export type AnswerError = (request: Request, thrown: unknown, shape: ErrorShape) => Response

export function createRouter(handlers: Handlers, answerError: AnswerError): Handler {
  // `normalize: false`: the framework would remove unknown fields instead of refusing them. Only the root's settings
  // count.
  const app = new Elysia({
    normalize: false,
    aot: true,
    precompile: true,
    systemRouter: false,
    handler: { standardHostname: false },
  })
  // Before the routes: it covers what is mounted after it.
  app.onError(({ request, error, code }) => {
    const path = pathOf(request.url)
    return answerError(request, code === 'NOT_FOUND' ? unknownRoute(path) : error, errorsOf(path))
  })
  for (const [id, operation] of entries()) {
    if (id === 'createToken') continue
    const answer = withErrors(handlers[id], operation)
    app.route(operation.method, routePath(operation), ({ request }) => answer(request), unread)
  }
  // Last: the plugin reads all headers and the query of every route after it.
  const { createToken } = operations
  const mint = withErrors(handlers.createToken, createToken)
  app
    .use(bearer())
    .route(
      createToken.method,
      routePath(createToken),
      ({ request, bearer }) =>
        contradictsBearer(request.headers.get('authorization'), bearer)
          ? answerError(request, unauthorized(), undefined)
          : mint(request),
      unread,
    )
  return app.compile().fetch

  function withErrors(handle: Handler, { errors }: Operation): (request: Request) => Promise<Response> {
    return async (request) => {
      try {
        return await handle(request)
      } catch (thrown) {
        return answerError(request, thrown, errors)
      }
    }
  }
}

/** The framework's own reading takes a body that it cannot parse for no body at all; ours is `body.ts`. */
const unread = { parse: 'none' } as const

function entries(): [OperationId, Operation][] {
  return Object.entries(operations) as [OperationId, Operation][]
}

/** Its wildcard has no name: the handlers read names from the path as it came. */
function routePath({ path }: Operation): string {
  return path.replace(/\{\+\w+\}/g, '*').replace(/\{(\w+)\}/g, ':$1')
}

/** A path that exists under another method says so. */
function unknownRoute(path: string): PlatformError {
  const allow = allowedMethods(path)
  return allow === undefined
    ? notFound()
    : new PlatformError('method_not_allowed', `This path answers ${allow} only`, { headers: { allow } })
}
