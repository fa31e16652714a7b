/**
 * The listening sockets of this process, as the system has them. The runtime has no setting for what is done with them
 * here, so the system is called.
 */

import { dlopen, ptr } from 'bun:ffi'
import { openSync, readdirSync } from 'node:fs'

/** Ours: bytes that the operating system receives on one connection before postern reads them; the system may double this number. Past it: the sender waits. */
export const receiveBufferBytes = 16 * 1024

// From Linux's <asm-generic/socket.h> and <asm-generic/fcntl.h>; the last is the same for x64 and arm64.
const levelOfSocket = 1
const receiveBufferOption = 8
const acceptsConnectionsOption = 30
const closeOnExec = 0x80000

export interface ListeningSockets {
  /** Until `resume`, the system hands over no new connection: clients wait as they do before one is accepted. */
  pause(): void
  resume(): void
  /** Before the sockets are closed. From then on `pause` does nothing. */
  end(): void
}

const untouched: ListeningSockets = { pause() {}, resume() {}, end() {} }

/**
 * Bounds how much of one connection the runtime handles in one pass of the event loop. It reads up to half a megabyte
 * of each connection at once: 40 clients that sent bodies in chunks of one byte, to operations that read none, held
 * everybody for 140 ms. Connections inherit the bound.
 *
 * The runtime also accepts connections as long as there are any, and reads each at once: clients that were refused and
 * came again, faster than they were refused, kept a pass from ending for seconds. `pause` ends that. An error of
 * `accept` does, so something that accepts nothing takes the socket's place for a moment; the socket stays open.
 *
 * Does nothing where the system is not Linux. `onFailure` is called with the reason why it cannot; the server works
 * without it, too.
 */
export function openListeningSockets(onFailure: (why: string) => void, library = 'libc.so.6'): ListeningSockets {
  if (process.platform !== 'linux') return untouched
  try {
    return tamed(open(library))
  } catch (error) {
    onFailure((error as Error).message)
    return untouched
  }
}

const open = (library: string) =>
  dlopen(library, {
    getsockopt: { args: ['i32', 'i32', 'i32', 'ptr', 'ptr'], returns: 'i32' },
    setsockopt: { args: ['i32', 'i32', 'i32', 'ptr', 'u32'], returns: 'i32' },
    dup: { args: ['i32'], returns: 'i32' },
    dup3: { args: ['i32', 'i32', 'i32'], returns: 'i32' },
    close: { args: ['i32'], returns: 'i32' },
  }).symbols

function tamed(system: ReturnType<typeof open>): ListeningSockets {
  const [value, bound] = [new Int32Array(1), new Int32Array([receiveBufferBytes])]
  const size = new Uint32Array([value.byteLength])
  const sockets = readdirSync('/proc/self/fd')
    .map(Number)
    .filter(
      (one) =>
        system.getsockopt(one, levelOfSocket, acceptsConnectionsOption, ptr(value), ptr(size)) === 0 && value[0] === 1,
    )
  for (const socket of sockets)
    system.setsockopt(socket, levelOfSocket, receiveBufferOption, ptr(bound), bound.byteLength)
  const nothing = openSync('/dev/null', 'r')
  /** By the socket whose place is taken: another descriptor of it. */
  const paused = new Map<number, number>()
  let isOver = false

  function pause(): void {
    if (isOver || paused.size > 0) return
    for (const socket of sockets) {
      const other = system.dup(socket)
      // No descriptor is left: then none is for a new connection either.
      if (other < 0) continue
      paused.set(socket, other)
      system.dup3(nothing, socket, closeOnExec)
    }
  }

  function resume(): void {
    for (const [socket, other] of paused) {
      system.dup3(other, socket, closeOnExec)
      system.close(other)
    }
    paused.clear()
  }

  return {
    pause,
    resume,
    end() {
      isOver = true
      resume()
    },
  }
}
