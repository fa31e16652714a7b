/** Bodies that a room reads from the interface, with the state of reading them. */

import { useEffect, useState } from 'preact/hooks'
import { ask } from './interface.ts'

export interface Resource<T> {
  readonly data: T | undefined
  readonly error: Error | undefined
  readonly isLoading: boolean
  /** Reads it again. */
  readonly again: () => void
}

/** Reads a path, again whenever it changes; null reads nothing. An answer that comes late is dropped. */
export function useResource<T>(path: string | null): Resource<T> {
  const [state, setState] = useState<{ of: string | null; data?: T; error?: Error }>({ of: null })
  const [round, setRound] = useState(0)
  useEffect(() => {
    if (path === null) return
    const stop = new AbortController()
    ask<T>('GET', path, { signal: stop.signal }).then(
      (data) => setState({ of: path, data }),
      (error: Error) => {
        if (!stop.signal.aborted) setState({ of: path, error })
      },
    )
    return () => stop.abort()
  }, [path, round])
  const isCurrent = state.of === path
  return {
    data: isCurrent ? state.data : undefined,
    error: isCurrent ? state.error : undefined,
    isLoading: path !== null && !isCurrent,
    again: () => setRound((one) => one + 1),
  }
}

const minute = 60_000

/** Reads again each minute, while somebody looks. */
export function useEveryMinute({ again }: Pick<Resource<unknown>, 'again'>): void {
  useEffect(() => {
    const timer = setInterval(() => document.hidden || again(), minute)
    return () => clearInterval(timer)
  }, [])
}

/** Something that a press begins: whether it is under way, and how it ended. */
export function useAction<A extends unknown[], T>(act: (...given: A) => Promise<T>) {
  const [state, setState] = useState<{ isBusy?: boolean; isDone?: boolean; error?: Error; done?: T }>({})
  return {
    ...{ isBusy: false, isDone: false, ...state },
    async run(...given: A): Promise<void> {
      if (state.isBusy) return
      setState({ isBusy: true })
      try {
        setState({ isDone: true, done: await act(...given) })
      } catch (error) {
        setState({ error: error as Error })
      }
    },
  }
}
