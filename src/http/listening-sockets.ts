/** The listening sockets of this process. The runtime has no setting for what is done here, so the system is called. */

import { dlopen, ptr } from 'bun:ffi'
import { readdirSync } from 'node:fs'
import { workerProgram } from '../compiled.ts'

/** Ours: bytes that the operating system receives on one connection before postern reads them; the system may double this number. Past it: the sender waits. */
export const receiveBufferBytes = 16 * 1024

// From Linux's <asm-generic/socket.h>.
const levelOfSocket = 1
const receiveBufferOption = 8
const acceptsConnectionsOption = 30

/** Sent to the thread that watches. */
export interface Watch {
  readonly library: string
  /** Descriptors of listening sockets. */
  readonly sockets: readonly number[]
  /** One of `stateOf`, in memory that both threads have. */
  readonly state: Int32Array
}

/** `paused`: something else is in the place of a socket. `over`: nobody may look at the sockets any more. */
export const stateOf = { watched: 0, paused: 1, over: 2 } as const

/**
 * Bounds how much of one connection the runtime handles in one pass of the event loop. It reads up to half a megabyte
 * of each connection at once: 40 clients that sent bodies in chunks of one byte, to operations that read none, held
 * everybody for 140 ms. Connections inherit the bound.
 *
 * The runtime also accepts connections as long as there are any, and reads each at once: clients that were refused and
 * came again, faster than they were refused, kept a pass from ending for seconds. A thread watches for that.
 *
 * Does nothing where the system is not Linux. `onFailure` is called with the reason why it cannot; the server works
 * without it, too. Returns a function to call before the sockets are closed: their descriptors may be something else
 * after that.
 */
export function boundListeningSockets(onFailure: (why: string) => void, library = 'libc.so.6'): () => void {
  if (process.platform !== 'linux') return () => {}
  try {
    return watched(boundSockets(library), library, onFailure)
  } catch (error) {
    onFailure((error as Error).message)
    return () => {}
  }
}

/** The descriptors of all listening sockets of this process, whose connections have the bound from now on. */
function boundSockets(library: string): number[] {
  const { symbols: system } = dlopen(library, {
    getsockopt: { args: ['i32', 'i32', 'i32', 'ptr', 'ptr'], returns: 'i32' },
    setsockopt: { args: ['i32', 'i32', 'i32', 'ptr', 'u32'], returns: 'i32' },
  })
  const [value, bound] = [new Int32Array(1), new Int32Array([receiveBufferBytes])]
  const size = new Uint32Array([value.byteLength])
  const isListening = (one: number) =>
    system.getsockopt(one, levelOfSocket, acceptsConnectionsOption, ptr(value), ptr(size)) === 0 && value[0] === 1
  const sockets = readdirSync('/proc/self/fd').map(Number).filter(isListening)
  for (const socket of sockets)
    system.setsockopt(socket, levelOfSocket, receiveBufferOption, ptr(bound), bound.byteLength)
  return sockets
}

function watched(sockets: readonly number[], library: string, onFailure: (why: string) => void): () => void {
  const state = new Int32Array(new SharedArrayBuffer(4))
  const worker = new Worker(workerProgram('http/accept-watch.ts'), { ref: false, smol: true })
  worker.onerror = ({ message }) => onFailure(message)
  worker.postMessage({ library, sockets, state } satisfies Watch)
  return () => {
    // The sockets are in their places again within a millisecond.
    while (Atomics.compareExchange(state, 0, stateOf.watched, stateOf.over) === stateOf.paused);
    Atomics.notify(state, 0)
    worker.terminate()
  }
}
