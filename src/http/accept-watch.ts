/**
 * The thread that ends the runtime's accepting of connections now and then, while there are always more
 * (`listening-sockets.ts`). The event loop cannot do it: it is in that loop, and for bytes that are no request it calls
 * nothing of ours.
 */

import { dlopen, ptr } from 'bun:ffi'
import { openSync } from 'node:fs'
import { stateOf, type Watch } from './listening-sockets.ts'

/** Milliseconds between two looks; a look takes some 30 microseconds of another core. Past it: the next look. */
const lookMs = 20
/** The same while connections wait: in so much time a few dozen are accepted, in turn with what else there is to do. */
const lookAgainMs = 4
/** Milliseconds in which nothing is accepted: the event loop has to try it once, between two connections. */
const pauseMs = 1

// From Linux's <netinet/tcp.h> and <asm-generic/fcntl.h>; the last is the same for x64 and arm64.
const [levelOfTcp, tcpInfo, listening] = [6, 11, 10]
const closeOnExec = 0x80000

declare const self: Worker

self.onmessage = ({ data }: MessageEvent<Watch>) => watch(data)

function watch({ library, sockets, state }: Watch): void {
  const { symbols: system } = dlopen(library, {
    getsockopt: { args: ['i32', 'i32', 'i32', 'ptr', 'ptr'], returns: 'i32' },
    dup: { args: ['i32'], returns: 'i32' },
    dup3: { args: ['i32', 'i32', 'i32'], returns: 'i32' },
    close: { args: ['i32'], returns: 'i32' },
  })
  const info = new Uint32Array(64)
  const size = new Uint32Array([info.byteLength])
  const nothing = openSync('/dev/null', 'r')

  /** Whether connections wait: the length of the queue is where a connection has its unacknowledged segments. */
  function isCrowded(socket: number): boolean {
    if (system.getsockopt(socket, levelOfTcp, tcpInfo, ptr(info), ptr(size)) !== 0) return false
    return ((info[0] ?? 0) & 0xff) === listening && (info[6] ?? 0) > 0
  }

  /** An error of `accept` ends the runtime's loop. The socket stays open by another descriptor, and clients wait. */
  function pause(socket: number): void {
    if (Atomics.compareExchange(state, 0, stateOf.watched, stateOf.paused) !== stateOf.watched) return
    const other = system.dup(socket)
    if (other >= 0) {
      system.dup3(nothing, socket, closeOnExec)
      Atomics.wait(state, 0, stateOf.paused, pauseMs)
      system.dup3(other, socket, closeOnExec)
      system.close(other)
    }
    Atomics.store(state, 0, stateOf.watched)
  }

  let crowded: readonly number[] = []
  // Ends when the state is another one.
  while (Atomics.wait(state, 0, stateOf.watched, crowded.length > 0 ? lookAgainMs : lookMs) === 'timed-out') {
    const before = crowded
    crowded = sockets.filter(isCrowded)
    for (const socket of crowded) if (before.includes(socket)) pause(socket)
  }
}
