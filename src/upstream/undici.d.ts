/** The one file of undici that is used: the runtime has a module of that name, which is its own fetch. */
declare module 'undici/lib/dispatcher/pool.js' {
  interface Controller {
    abort(reason: Error): void
  }
  interface Handler {
    onRequestStart(controller: Controller): void
    onResponseStart(controller: Controller, status: number, headers: Record<string, string | string[]>): void
    onResponseData(controller: Controller, chunk: Uint8Array<ArrayBuffer>): void
    onResponseEnd(): void
    onResponseError(controller: Controller, error: Error): void
  }
  interface Dispatched {
    readonly path: string
    readonly method: string
    readonly headers: Readonly<Record<string, string>>
    readonly body: Uint8Array | string | null
  }
  class Pool {
    constructor(origin: string, options: object)
    /** Throws for headers that cannot be sent. */
    dispatch(request: Dispatched, handler: Handler): boolean
    close(): Promise<void>
  }

  export type { Controller }
  export default Pool
}
