/** Reads servers, of which each may have a megabyte, in the time of the request's owner. */

import { allowanceOf } from '../fairness/allowance.ts'
import type { DirectorySnapshot } from './directory.ts'

/** The details of a server as JSON; undefined if there is none. Rejects with `rate_limited`. */
export function serverJsonOf(
  directory: Pick<DirectorySnapshot, 'serverJson'>,
  request: Request,
  name: string,
): Promise<Uint8Array | undefined> {
  return allowanceOf(request).readRecords(
    () => directory.serverJson(name),
    (json) => json?.length ?? 0,
  )
}
