/** Registers the operations with the framework, which no other file imports, and switches off its unwanted defaults. */

import { bearer } from '@elysiajs/bearer'
import { Elysia } from 'elysia'
import { notFound, PlatformError, unauthorized } from '../errors.ts'
import { Allowance, openAllowance } from '../fairness/allowance.ts'
import type { Fairness } from '../fairness/fairness.ts'
import { type Operation, type OperationId, operationEntries, operations } from '../operations.ts'
import { hasUnreadChunksEnded } from './body.ts'
import type { ClientSockets } from './client-sockets.ts'
import { contradictsBearer } from './credential.ts'
import type { Handler, Handlers } from './handler.ts'
import { pathOf } from './path.ts'
import { allowedMethods, errorsOf } from './route.ts'

export type ErrorShape = Operation['errors']

/** Makes the response for a thrown value, in the operation's error format. */
type AnswerError = (request: Request, thrown: unknown, shape: ErrorShape) => Response

interface RouterParts {
  readonly handlers: Handlers
  readonly fairness: Fairness
  readonly sockets: Pick<ClientSockets, 'addressOf'>
  readonly answerError: AnswerError
}

/** The compiled router. It opens the allowance of each request; errors become responses through `answerError`. */
export function createRouter(parts: RouterParts): Handler {
  const { answerError } = parts
  const app = new Elysia(settings)
  // Before the routes: it applies only to routes that are added after it.
  app.onError(({ request, error, code }) => {
    const path = pathOf(request.url)
    return code === 'NOT_FOUND' ? answerUnknown(parts, request, path) : answerError(request, error, errorsOf(path))
  })
  for (const [id, operation] of operationEntries) {
    const handle = within(parts, id, operation)
    const answer = id === 'createToken' ? behindBearer(operation, handle, answerError) : handle
    for (const path of routePaths(operation))
      app.route(operation.method, path, ({ request }) => answer(request), unread)
  }
  // The endpoint of a namespace is no connection, whose paths its own would fit.
  for (const method of ['PUT', 'DELETE'] as const)
    for (const path of routePaths(operations.callNamespace))
      app.route(method, path, ({ request }) => answerOtherMethod(parts, request), unread)
  return app.compile().fetch
}

/**
 * Refuses a credential of which the bearer plugin reads another one. In an application of its own: the plugin makes the
 * framework parse all headers and the query of every request of its application, in a millisecond if the query is long.
 */
function behindBearer({ method, path }: Operation, answer: Handler, answerError: AnswerError): Handler {
  const app = new Elysia(settings)
    .use(bearer())
    .route(
      method,
      path,
      ({ request, bearer }) =>
        contradictsBearer(request.headers.get('authorization'), bearer)
          ? answerError(request, unauthorized(), undefined)
          : answer(request),
      unread,
    )
  const { fetch } = app.compile()
  // The operation refuses any query, so nobody has to parse one.
  return (request) => (request.url.includes('?') ? answer(request) : fetch(request))
}

function within(parts: RouterParts, id: OperationId, operation: Operation): Handler {
  const handle = parts.handlers[id]
  const { costs, errors, isStream } = operation
  return (request) => {
    // The framework takes `HEAD` for `GET`, and would never read the stream.
    if (isStream === true && request.method === 'HEAD') return answerOtherMethod(parts, request)
    return answerWithin(parts, request, { id, costs, errors }, handle)
  }
}

/** For a method that the operations of the path do not have. */
function answerOtherMethod({ answerError }: RouterParts, request: Request): Response {
  const path = pathOf(request.url)
  return answerError(request, unknownRoute(path), errorsOf(path))
}

/** Thousands of connections may ask for such paths: their requests belong to the network that they come from. */
function answerUnknown(parts: RouterParts, request: Request, path: string): Promise<Response> {
  return answerWithin(parts, request, { costs: operations.home.costs, errors: errorsOf(path) }, () => {
    throw unknownRoute(path)
  })
}

interface Within extends Pick<Operation, 'costs' | 'errors'> {
  readonly id?: OperationId
}

/** Runs a handler within the allowance of its request. */
async function answerWithin(
  { fairness, sockets, answerError }: RouterParts,
  request: Request,
  operation: Within,
  handle: Handler,
): Promise<Response> {
  const allowance = new Allowance(fairness, request, sockets.addressOf, operation)
  openAllowance(request, allowance)
  try {
    const { isPublic, isVisit, bodyBytesMax } = operation.costs
    if (isPublic === true) await allowance.belongsToStranger() // 429
    if (isVisit === true) {
      await allowance.pass() // 429
      allowance.requireClient()
    }
    // Before it works: it may wait for a server for minutes.
    if (bodyBytesMax === 0 && !(await hasUnreadChunksEnded(request))) throw needlessBody()
    return await handle(request)
  } catch (thrown) {
    const response = answerError(request, thrown, operation.errors)
    if (!(await hasUnreadChunksEnded(request))) response.headers.set('connection', 'close')
    return response
  } finally {
    allowance.end()
  }
}

const needlessBody = () =>
  new PlatformError('invalid_request', 'this operation takes no body: omit Transfer-Encoding', {
    headers: { connection: 'close' },
  })

/** `normalize: false`: otherwise the framework removes unknown fields silently. Only the root's settings apply. */
const settings = { normalize: false, aot: true, systemRouter: false, handler: { standardHostname: false } } as const

/** The framework's body parser treats an invalid body as absent, so it is switched off; `body.ts` parses bodies. */
const unread = { parse: 'none' } as const

/**
 * The template in the framework's syntax. Names have none of ours: handlers read them from the URL (path.ts). A
 * wildcard must be last; one before something else is a qualifiedName, with its slash encoded or not.
 */
function routePaths({ path }: Operation): string[] {
  const templates = /\{\+\w+\}./.test(path)
    ? ['{a}', '{a}/{b}'].map((names) => path.replace(/\{\+\w+\}/, names))
    : [path.replace(/\{\+\w+\}$/, '*')]
  return templates.map((template) =>
    template
      .split('/')
      .map((part, index) => (part.startsWith('{') ? `:part${index}` : part))
      .join('/'),
  )
}

/** 405 with `Allow` if the path exists with other methods; otherwise 404. */
function unknownRoute(path: string): PlatformError {
  const allow = allowedMethods(path)
  return allow === undefined
    ? notFound()
    : new PlatformError('method_not_allowed', `This path answers ${allow} only`, { headers: { allow } })
}
