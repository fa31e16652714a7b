/**
 * The owner of what a request takes: the user or organization behind its credential, the setup tickets for all
 * namespaces of one user or organization together, or the network of a stranger. Allowances are divided among owners,
 * so a second key or token of a user gains nothing.
 */

import type { Holder } from '../storage/store.ts'

export type { Holder }

/** The name of the owner. Where there is no user it begins with NUL, which no user's id does. */
export function ownerOf({ keyId, userId }: Holder): string {
  return userId ?? keyId
}

/**
 * The holder of a setup ticket: the connection that it is for. All tickets for namespaces of one owner count together,
 * since an organization may make a thousand connections in each of a thousand namespaces; and apart from the owner's
 * own requests, since anybody may have a ticket.
 */
export function ticketHolder(
  owner: string,
  ref: { readonly namespace: string; readonly connectionId: string },
): Holder {
  return { keyId: `\0tickets of ${owner}`, family: `${ref.namespace}/${ref.connectionId}` }
}

/** For the work of an owner's streams of events and list changes, beside the owner's requests. */
export function listenerOf(holder: Holder): Holder {
  const name = `\0listener ${ownerOf(holder)}`
  return { keyId: name, family: name }
}

/** A client without a credential, by its address (`http/client-address.ts`). Its network is the owner. */
export function strangerAt(address: string): Holder {
  return { keyId: `\0network ${networkOf(address)}`, family: `\0network ${address}` }
}

/** The network of an address: /24 of IPv4, /48 of IPv6. A client that has one address there can often have many. */
export function networkOf(address: string): string {
  const end = address.lastIndexOf('.')
  if (end > 0) return address.slice(0, end)
  const [first, second, third] = address.replace('/64', '').split(':')
  return third === undefined ? address : `${first}:${second || 0}:${third || 0}`
}

/**
 * Bytes of a body that is small: it is handled without waiting for its owner's part of the time. Past it: it is counted
 * there, and apart from small ones as long as nobody has looked at the credential.
 */
export const smallBodyBytes = 4 * 1024

/**
 * The holder of a body's memory. A revocation finds room beside all else of its key, token or network, and so does a
 * small body beside the large ones that others of its network send without a credential.
 */
export function bodyHolderOf(
  holder: Holder,
  headers: Headers,
  { isRemoval, isKnown }: { readonly isRemoval: boolean; readonly isKnown: boolean },
): Holder {
  if (isRemoval) return { ...holder, family: `\0removals of ${holder.family}` }
  if (isKnown) return holder
  const isLarge = headers.has('transfer-encoding') || Number(headers.get('content-length')) > smallBodyBytes
  return isLarge ? { ...holder, family: `\0large bodies of ${holder.family}` } : holder
}
