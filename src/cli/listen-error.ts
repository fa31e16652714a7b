/** The error that tells the operator why the server cannot listen on an address. */

import { CommandError } from '../errors.ts'

/** `flags`: where to choose another address, such as `--port`; the message ends with it. */
export function listenError(error: unknown, host: string, port: number, flags: string): CommandError {
  const { code, message } = error as NodeJS.ErrnoException
  // The runtime has these for a name that has no address, and for an address of another machine.
  const isNotHere = ['ENOENT', 'EADDRNOTAVAIL', 'EINVAL', 'EAGAIN'].includes(code ?? '')
  const why = isNotHere ? 'this machine has no such address' : message
  return new CommandError(
    code === 'EADDRINUSE'
      ? `port ${port} on ${host} is taken: stop what uses it, or choose another with ${flags} (port 0 picks a free one)`
      : `cannot listen on ${host}:${port}: ${why}; choose another with ${flags}`,
    1,
    { cause: error },
  )
}
