/** Addresses of rooms: the path below `/console`, and filters as query parameters. */

import { computed, signal } from '@preact/signals'
import { base } from './interface.ts'

const root = `${base}/console`

interface Address {
  /** Parts of the path, decoded: `['connections', 'acme', 'crm']`. */
  readonly path: readonly string[]
  readonly query: URLSearchParams
  /** Whether the browser led here, back or forward: then the room is found as it was left. */
  readonly isBack: boolean
  /** Something that was done, for the room to which it led. */
  readonly news?: string | undefined
}

const read = (isBack = false): Address => {
  const { pathname, search } = location
  const below = pathname.startsWith(root) ? pathname.slice(root.length) : ''
  return { path: below.split('/').filter(Boolean).map(decoded), query: new URLSearchParams(search), isBack }
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

export const address = signal(read())
/** A filter of the room that is looked at; empty: it is not set. */
export const filterOf = (name: string): string => address.value.query.get(name) ?? ''
/** The filters of these names that are set, with their values. */
export const filtersOf = (names: readonly string[]) =>
  Object.fromEntries(names.map((name) => [name, filterOf(name)] as const).filter(([, value]) => value !== ''))
/** Changes when another room, or another thing in it, is looked at. */
export const roomKey = computed(() => address.value.path.join('/'))

// A list is as long as it was only once its room is painted: `placed` scrolls then.
history.scrollRestoration = 'manual'
const keepPlace = () => history.replaceState({ y: scrollY }, '')
addEventListener('scrollend', keepPlace)
addEventListener('popstate', () => {
  address.value = read(true)
})

/** Scrolls to where a room was left, or to its beginning. */
export function placed(): void {
  scrollTo(0, address.peek().isBack ? (history.state?.y ?? 0) : 0)
}

/** A path from its parts: `/connect/acme/crm`. */
export const pathOf = (...parts: readonly string[]) => parts.map((part) => `/${encodeURIComponent(part)}`).join('')

/** Parameters of a query, each beginning with `&`; an empty one is left out. */
export const parametersOf = (values: Readonly<Record<string, string>>) =>
  Object.entries(values)
    .map(([name, value]) => (value === '' ? '' : `&${encodeURIComponent(name)}=${encodeURIComponent(value)}`))
    .join('')

/** The address of a room: `hrefOf('connections', 'acme', 'crm')`. That of the overview has no path, or an empty one. */
export const hrefOf = (...path: readonly string[]) => root + pathOf(...path.filter(Boolean))

/** The same with filters: `hrefWith({ namespace: 'acme' }, 'connections')`. */
export const hrefWith = (filters: Readonly<Record<string, string>>, ...path: readonly string[]) =>
  `${hrefOf(...path)}?${new URLSearchParams(filters)}`

/** `news`: what was done, as the room there says it. */
export function go(href: string, news?: string): void {
  keepPlace()
  history.pushState(null, '', href)
  address.value = { ...read(), news }
}

/**
 * Sets filters of the room that is looked at; an empty one is taken away. Going back leads to those of before. Somebody
 * who types a filter makes one of it, not one for each letter.
 */
export function filter(changes: Readonly<Record<string, string>>): void {
  const query = new URLSearchParams(address.value.query)
  const isTyped = Object.entries(changes).every(([name, value]) => goesOn(filterOf(name), value))
  for (const [name, value] of Object.entries(changes)) value === '' ? query.delete(name) : query.set(name, value)
  const href = `${location.pathname}${query.size === 0 ? '' : `?${query}`}`
  if (isTyped) {
    history.replaceState(null, '', href)
    address.value = read()
  } else go(href)
}

/** Whether one text may be what somebody has typed of the other so far. */
const goesOn = (before: string, after: string) =>
  before !== '' && after !== '' && (after.startsWith(before) || before.startsWith(after))

/** Links of ours are followed without loading the document again. */
document.addEventListener('click', (event) => {
  const link = event.target instanceof Element ? event.target.closest('a') : null
  const isPlain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey
  if (link === null || !isPlain || event.defaultPrevented || link.target !== '') return
  if (link.origin !== location.origin || !link.pathname.startsWith(root)) return
  // The browser leads to a place in the room itself.
  if (link.hash !== '' && link.href.startsWith(`${location.href.replace(/#.*/, '')}#`)) return
  event.preventDefault()
  go(link.href)
})
