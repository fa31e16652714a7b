/** Tells whether a connection would lead back to this server, or to another replica: calls would recurse. */

import { isLoopback } from '../http/guard.ts'
import type { DataFolder } from '../maintenance/data-folder.ts'

/** Makes a test whether an address, port and URL belong to this server (base URL: `url`) or to another replica. */
export function isThisServer(
  listeners: readonly ({ readonly host: string; readonly port: number } | undefined)[],
  url: string,
  localAddresses: readonly string[],
  database: DataFolder['database'],
) {
  return (address: string, at: number, target: URL) =>
    listeners.some((one) => one !== undefined && at === one.port && isThisMachine(address, one.host, localAddresses)) ||
    isBelow(target, url) ||
    (database?.otherAddresses().has(`${address} ${at}`) ?? false)
}

/** True for loopback, the listener's host, and every address of this machine. */
function isThisMachine(address: string, host: string, localAddresses: readonly string[]): boolean {
  return isLoopback(address) || address === host || localAddresses.includes(address)
}

/** True if the URL is below our own base URL, even through a proxy. Other services may share its host name. */
function isBelow(target: URL, baseUrl: string): boolean {
  const { origin, pathname } = new URL(baseUrl)
  return target.origin === origin && `${target.pathname}/`.startsWith(pathname.replace(/\/*$/, '/'))
}
