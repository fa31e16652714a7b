/** Bodies that a room reads from the interface, with the state of reading them. */

import { useEffect, useState } from 'preact/hooks'
import { ask, Refused } from './interface.ts'

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

/** A list that is read page by page. */
export interface Pages<T> extends Omit<Resource<T[]>, 'data'> {
  readonly items: readonly T[]
  readonly hasMore: boolean
  readonly more: () => void
}

/** Rows that a list keeps in memory. Past it: the first ones are let go. */
const rowsKeptMax = 1000

/** `itemsOf`: the items of a page. */
export function usePages<P extends { nextCursor: string | null }, T>(
  path: string | null,
  itemsOf: (page: P) => readonly T[],
): Pages<T> {
  const [state, setState] = useState<{ of: string | null; items: readonly T[]; cursor: string | null; error?: Error }>({
    ...{ of: null, items: [], cursor: null },
  })
  const [asked, setAsked] = useState<{ of: string | null; cursor: string | null; round: number }>({
    ...{ of: path, cursor: null, round: 0 },
  })
  const cursor = asked.of === path ? asked.cursor : null
  useEffect(() => {
    if (path === null) return
    const stop = new AbortController()
    const joint = path.includes('?') ? '&' : '?'
    const url = cursor === null ? path : `${path}${joint}cursor=${encodeURIComponent(cursor)}`
    ask<P>('GET', url, { signal: stop.signal }).then(
      (page) =>
        setState((before) => {
          const former = cursor === null || before.of !== path ? [] : before.items
          return { of: path, items: [...former, ...itemsOf(page)].slice(-rowsKeptMax), cursor: page.nextCursor }
        }),
      (error: Error) => {
        if (!stop.signal.aborted) setState((before) => ({ ...before, of: path, error }))
      },
    )
    return () => stop.abort()
  }, [path, cursor, asked.round])
  const isCurrent = state.of === path
  return {
    items: isCurrent ? state.items : [],
    error: isCurrent ? state.error : undefined,
    isLoading: path !== null && !isCurrent,
    hasMore: isCurrent && state.cursor !== null,
    more: () => setAsked({ of: path, cursor: state.cursor, round: 0 }),
    again: () => setAsked(({ round }) => ({ of: path, cursor: null, round: round + 1 })),
  }
}

/** Something that a press begins: whether it is under way, and how it ended. */
export function useAction<A extends unknown[], T>(act: (...given: A) => Promise<T>) {
  const [state, setState] = useState<{ isBusy: boolean; error?: Error; done?: T }>({ isBusy: false })
  return {
    ...state,
    async run(...given: A): Promise<T | undefined> {
      if (state.isBusy) return undefined
      setState({ isBusy: true })
      try {
        const done = await act(...given)
        setState({ isBusy: false, done })
        return done
      } catch (error) {
        setState({ isBusy: false, error: error instanceof Error ? error : new Refused(0, {}, null) })
        return undefined
      }
    },
  }
}
