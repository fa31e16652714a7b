/**
 * Bounds how much of one connection the runtime handles in one pass of the event loop. It reads up to half a megabyte
 * of each connection at once, and has no setting for that: 40 clients that sent bodies in chunks of one byte, to
 * operations that read none, held everybody for 140 ms. So the system is asked to hand over less. The runtime has no
 * call for that either, so this is a foreign one, made once when the server begins to listen.
 */

import { dlopen, ptr } from 'bun:ffi'
import { readdirSync } from 'node:fs'

/** Ours: bytes that the operating system receives on one connection before postern reads them; the system may double this number. Past it: the sender waits. */
export const receiveBufferBytes = 16 * 1024

// From Linux's <asm-generic/socket.h>.
const levelOfSocket = 1
const receiveBufferOption = 8
const acceptsConnectionsOption = 30

/**
 * Sets the bound for all listening sockets of this process, whose connections inherit it. Returns why it could not,
 * or undefined; the server works without it, too. Does nothing where the system is not Linux.
 */
export function boundReceiveBuffers(library = 'libc.so.6'): string | undefined {
  if (process.platform !== 'linux') return undefined
  try {
    const { symbols } = dlopen(library, {
      getsockopt: { args: ['i32', 'i32', 'i32', 'ptr', 'ptr'], returns: 'i32' },
      setsockopt: { args: ['i32', 'i32', 'i32', 'ptr', 'u32'], returns: 'i32' },
    })
    const value = new Int32Array(1)
    const size = new Uint32Array([value.byteLength])
    const bound = new Int32Array([receiveBufferBytes])
    for (const descriptor of readdirSync('/proc/self/fd').map(Number)) {
      const found = symbols.getsockopt(descriptor, levelOfSocket, acceptsConnectionsOption, ptr(value), ptr(size))
      if (found === 0 && value[0] === 1)
        symbols.setsockopt(descriptor, levelOfSocket, receiveBufferOption, ptr(bound), bound.byteLength)
    }
    return undefined
  } catch (error) {
    return (error as Error).message
  }
}
