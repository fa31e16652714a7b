/** `rpcReqMatch`: patterns for values in the body of an MCP JSON-RPC request (spec 2.2; contract, 4.3 and 7.6). */

import { costToAsk, matches } from '../schema/patterns.ts'

/** Ours: parts of a path of `rpcReqMatch`; JSON-RPC bodies nest a few levels, so a longer path matches nothing real. Past it: 400. */
const rpcPathPartsMax = 16
/** Ours: characters of the keys of an object that postern normalizes; normalizing can turn one character into eighteen. Past it: no value of the object matches. */
const foldedCharsMax = 16 * 1024
/** Ours: characters of a value that a pattern is matched against, so that the worst pattern stays within 30 ms. Past it: the value does not match. */
const rpcValueCharsMax = 1024

export interface RpcRule {
  /** As written in the policy; dots separate the parts. */
  readonly path: string
  readonly pattern: string
}

export function pathProblem(path: string): string | undefined {
  const parts = path.split('.')
  if (parts.includes('')) return 'has an empty part between dots'
  if (parts.length > rpcPathPartsMax) return `at most ${rpcPathPartsMax} parts`
  return undefined
}

/**
 * Requests that a client sends before its first call, and to discover what there is. A token for one tool must be able
 * to send them, so rules below `params` do not apply to them; other rules do.
 */
const preliminary = /^(?:initialize|ping|server\/discover|tools\/list|notifications\/.*)$/s

const paramsPrefix = 'params.'
const [named, resources] = [
  new Set(['tools/call', 'prompts/get']),
  new Set(['resources/read', 'resources/subscribe', 'resources/unsubscribe']),
]
const methodsByParameter = new Map([
  ['name', named],
  ['arguments', named],
  ['uri', resources],
])

/**
 * The methods of MCP, and what a server may take for one: letters of another case, and other characters before them.
 * Others are those of an extension, which alone knows their parameters.
 */
const parts = 'server|tools|prompts|resources|completion|logging|tasks|roots|sampling|elicitation|notifications'
const ofMcp = new RegExp(`^\\W*(?:(?:initialize|ping)$|(?:${parts}|subscriptions)/)`, 'iu')

/**
 * The methods that have the parameter in which a path begins, if rules are written about that parameter; undefined
 * for other paths. Servers ignore the parameter in other methods: a client could add it to pass a rule about tools.
 */
export function methodsWith(path: string): ReadonlySet<string> | undefined {
  if (!isParamsRule({ path })) return undefined
  const end = path.indexOf('.', paramsPrefix.length)
  return methodsByParameter.get(path.slice(paramsPrefix.length, end < 0 ? path.length : end))
}

export function isParamsRule({ path }: Pick<RpcRule, 'path'>): boolean {
  return path.startsWith(paramsPrefix)
}

/** True for a request to which rules below `params` do not apply. */
export function isPreliminary(body: unknown): boolean {
  if (typeof body !== 'object' || body === null || !Object.hasOwn(body, 'method')) return false
  const { method } = body as { method: unknown }
  if (typeof method !== 'string' || !preliminary.test(method)) return false
  // With an id it is a request, whatever the name of its method, and a server may answer it.
  return !(method.startsWith('notifications/') && Object.hasOwn(body, 'id'))
}

/** A message's body, as rules look at it: one for all rules, as there may be many. */
export class RpcBody {
  readonly #body: unknown
  /** Folded names that more than one key of an object has: an object may have thousands of keys. */
  readonly #lookalikes = new Map<object, Lookalikes>()

  constructor(body: unknown) {
    this.#body = body
  }

  /**
   * Whether the value at the path matches, in steps: yields the cost (`costToAsk`) before it matches. A missing value,
   * null, an object, an array, a text that is too long and one with a NUL do not match.
   */
  *matches({ path, pattern }: RpcRule): Generator<number, boolean> {
    const text = this.textAt(path)
    if (text === undefined) return false
    yield costToAsk(pattern, text)
    return matches(pattern, text)
  }

  /**
   * The text at a path. Own properties only, so that `constructor.name` or `length` match nothing; digits do not index
   * an array. Undefined for a parameter that the method does not have (`methodsWith`), and if an object has two keys
   * with the same letters and digits, or one that is itself the rest of the path: some servers take one for the other.
   */
  textAt(path: string): string | undefined {
    const methods = methodsWith(path)
    if (methods !== undefined) {
      const method = this.textAt('method')
      if (method === undefined || (!methods.has(method) && ofMcp.test(method))) return undefined
    }
    let value = this.#body
    let rest = path
    for (const part of path.split('.')) {
      if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
      // lodash, for one, takes such a key first.
      if (rest !== part && Object.hasOwn(value, rest)) return undefined
      const twice = this.#lookalikesIn(value)
      if (!Object.hasOwn(value, part) || (twice.size > 0 && twice.has(lettersOf(part)))) return undefined
      value = (value as Record<string, unknown>)[part]
      rest = rest.slice(part.length + 1)
    }
    // A server in C may read only what stands before a NUL.
    if (typeof value === 'string') return value.length > rpcValueCharsMax || value.includes('\0') ? undefined : value
    if (typeof value === 'boolean') return JSON.stringify(value)
    // A number that another parser may read differently cannot be matched (NaN here, see `schema/json.ts`).
    if (typeof value === 'number' && Number.isFinite(value) && !Object.is(value, -0)) return JSON.stringify(value)
    return undefined
  }

  #lookalikesIn(object: object): Lookalikes {
    const known = this.#lookalikes.get(object)
    if (known !== undefined) return known
    // Each rule asks, and a key may have a megabyte.
    const found = lookalikesAmong(Object.keys(object))
    this.#lookalikes.set(object, found)
    return found
  }
}

function lookalikesAmong(keys: readonly string[]): Lookalikes {
  // Plain names, as nearly all are, differ if they are not the same.
  if (keys.length < 10 && /^[a-z0-9,]*$/.test(keys.join())) return none
  const seen = new Set<string>()
  const twice = new Set<string>()
  const folded = lettersOfAll(keys)
  for (const name of folded?.values() ?? []) {
    if (seen.has(name)) twice.add(name)
    seen.add(name)
  }
  return folded === undefined ? all : twice
}

/** The names of an object that some server may take for another. */
type Lookalikes = Pick<ReadonlySet<string>, 'has' | 'size'>

const none: Lookalikes = new Set()
const all: Lookalikes = { has: () => true, size: 1 }

/**
 * More combining marks in a row than any language uses (UAX 15, stream-safe text). Normalizing sorts them in quadratic
 * time: ten seconds for 80 kB. The two letters become marks when normalized.
 */
const manyMarks = /[\p{M}\uff9e\uff9f]{31}/u

/** Equal for keys that some parsers treat as the same. A key with `manyMarks` is not normalized: no rule has one. */
export function foldCase(key: string): string {
  const read = untilNul(key)
  if (!isNormalized(read)) return read.toLowerCase()
  // By way of capital letters, as some small ones share one, like the two forms of sigma; before that of small ones,
  // for the capital \u1e9e of \u00df. A dotted capital I leaves its dot.
  const folded = read.normalize('NFKC').toLowerCase().toUpperCase().toLowerCase()
  return folded.replaceAll('i\u0307', 'i')
}

/** Equal for keys that some reader takes for the same: protobuf, for one, reads `tenant_id` as `tenantId`. */
export const lettersOf = (key: string) => foldCase(key).replace(/[^\p{L}\p{N}]+/gu, '')

/** The part of a text that every program reads: some in C end it at a NUL. */
function untilNul(text: string): string {
  const end = text.indexOf('\0')
  return end < 0 ? text : text.slice(0, end)
}

/** Finds the field, folded, that some reader takes a key for; undefined for a key that is none to anybody. */
export function fieldFinder(fields: readonly string[]): (key: string) => string | undefined {
  const known = new Set(fields.map(foldCase))
  // A letter has two UTF-16 code units at most. A key may have a megabyte.
  const longest = 2 * Math.max(...fields.map((field) => field.length))
  return (key) => {
    if (known.has(key)) return key
    const read = untilNul(key)
    const folded = read.length > longest ? '' : foldCase(read)
    return known.has(folded) ? folded : undefined
  }
}

const isNormalized = (key: string) => !/^[\x00-\x7f]*$/.test(key) && !manyMarks.test(key)

/** Keys with their `lettersOf`; undefined if more than `foldedCharsMax` characters would have to be normalized. */
export function lettersOfAll(keys: Iterable<string>): ReadonlyMap<string, string> | undefined {
  const folded = new Map<string, string>()
  let characters = 0
  for (const key of keys) {
    if (isNormalized(key)) characters += key.length
    if (characters > foldedCharsMax) return undefined
    folded.set(key, lettersOf(key))
  }
  return folded
}
