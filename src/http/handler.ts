/** The functions that answer requests. */

import type { OperationId } from '../operations.ts'

/** Answers the requests of one operation. The router turns every error that a handler throws into a response. */
export type Handler = (request: Request) => Promise<Response> | Response

/** A handler for every operation. */
export type Handlers = { readonly [Id in OperationId]: Handler }
