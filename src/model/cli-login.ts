/** Logging in on a command line through the browser, in the shapes of the original's command line. */

/** `sessionId` is for the command line alone; its user opens `authUrl`. */
export interface CliLoginMade {
  readonly sessionId: string
  readonly authUrl: string
}

/** `apiKey`: a service token of the user, given once. */
export type CliLoginState =
  | { readonly status: 'pending' }
  | { readonly status: 'success'; readonly apiKey: string }
  | { readonly status: 'error'; readonly message: string }
