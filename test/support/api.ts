/** Requests of the HTTP API as a test writes them: a credential, a method, a path, a body. */

import { type SampleUser, sampleKeys } from './sample.ts'

export interface Answer {
  readonly status: number
  // biome-ignore lint/suspicious/noExplicitAny: a test says what it expects of it
  readonly body: any
  readonly headers: Headers
}

export interface Api {
  (request: string, body?: unknown): Promise<Answer>
  /** The same with another credential. */
  as(credential: string): Api
}

type Send = (path: string, init: RequestInit) => Promise<Response>

/** `request`: `PUT /namespaces/x`. A text as body is sent as it is. */
export function apiOf(send: Send, credential: string): Api {
  const api = async (request: string, body?: unknown): Promise<Answer> => {
    const [method = '', path = ''] = request.split(' ')
    const response = await send(path, {
      method,
      headers: {
        authorization: `Bearer ${credential}`,
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const text = await response.text()
    return { status: response.status, body: text === '' ? undefined : JSON.parse(text), headers: response.headers }
  }
  return Object.assign(api, { as: (other: string) => apiOf(send, other) })
}

/** One for each user of the sample. */
export function sampleApis(send: Send): Record<SampleUser, Api> {
  const apis = Object.entries(sampleKeys).map(([user, key]) => [user, apiOf(send, key)])
  return Object.fromEntries(apis) as Record<SampleUser, Api>
}
