/** Holds one value to a schema that was read. All looks count, and end past a bound. */

import { schemaStepsMax } from '../limits.ts'
import { shorten } from './cut-text.ts'
import { compile, isFound, patternProblem } from './patterns.ts'
import type { JsonSchema, Schema } from './schema-keywords.ts'

/** Ours: cost of all patterns of a schema on one value, in instructions times characters; about 40 ms. Past it: the arguments are refused. */
export const mockPatternCostMax = 1_000_000
/** Schemas that are applied within one another, references included. Past it: as for `schemaStepsMax`. */
const depthMax = 2000
/** Characters of a text that are looked at in a step: those beyond Latin-1 take some five times as long. */
const charactersPerStep = 10
/** Steps of a digest of an object or list, and of any other value. */
const digestSteps = 20
const scalarDigestSteps = 3
/** Steps of a schema that notes what it evaluated of a value. */
const notingSteps = 5
/** Errors in a value that a response lists. Past it: omitted. */
const errorsShownMax = 10
/** Characters of one of these errors. Past it: it is cut. */
const errorCharsMax = 400

/** Checking a value would take too long. The message continues a sentence that begins with the value's name. */
export class TooCostly extends Error {}
const tooManyParts = 'are too large to check by this schema: send fewer values'
const tooMuchText = 'take too long to check against the patterns of the schema: send less text'

/** The way to a value; undefined for the whole. It becomes a text only in an error. */
type Place = { readonly up: Place; readonly key: string | number } | undefined

/** The members and items of one value that were evaluated. */
interface Evaluated {
  readonly names: Set<string>
  readonly items: Set<number>
}

/** A keyword that is asked about a value. */
export interface Asked {
  /** The schema that has it. */
  readonly schema: JsonSchema
  readonly value: unknown
  readonly at: Place
  /** Receives what was evaluated; undefined if nobody asks. */
  readonly seen: Evaluated | undefined
}

/** `given`: the keyword's value, whose kind was checked when the schema was read. */
export type Rule<Given, Value = unknown> = (by: Evaluation, given: Given, value: Value, asked: Asked) => boolean
export type KeywordRule = Rule<never>

/** A schema that was read. */
export interface ReadSchema {
  /** The rules of each schema in it by their keywords, in the order in which they are asked. */
  readonly rules: ReadonlyMap<JsonSchema, readonly (readonly [keyword: string, rule: KeywordRule])[]>
  /** By the text of a reference. */
  readonly targets: ReadonlyMap<string, Schema>
  /** By their text. */
  readonly patterns: ReadonlyMap<string, Pattern>
  /** Whether it asks which properties or items were evaluated. */
  readonly isEvaluated: boolean
}

type Pattern = ReturnType<typeof patternOf>

/** A pattern that matches anywhere in the text, as JSON Schema requires. An unsupported pattern matches every text. */
export function patternOf(pattern: string) {
  const isKnown = patternProblem(pattern) === undefined
  const { program, size, ranges } = isKnown ? compile(pattern) : { program: undefined, size: 0, ranges: 0 }
  return {
    ...{ isKnown, size, ranges },
    /** The cost of asking about a text, in the unit of `mockPatternCostMax`. */
    costOf: (text: string) => size * (text.length + 1),
    test: (text: string) => program === undefined || isFound(program, text),
  }
}

const nothing = (): Evaluated => ({ names: new Set(), items: new Set() })

/** All methods but `fail` count what they do, and throw TooCostly past a bound. */
export class Evaluation {
  readonly errors: string[] = []
  readonly #read: ReadSchema
  readonly #name: string
  #steps = schemaStepsMax
  #patternCost = mockPatternCostMax
  #depth = 0
  /** How many schemas are asked whose errors are none of the value. */
  #quiet = 0
  /** By object, so that nested lists with `uniqueItems` do not compute those of inner values repeatedly. */
  readonly #digests = new Map<object, string>()

  /** `name`: of the value, in its errors. */
  constructor(read: ReadSchema, name: string) {
    this.#read = read
    this.#name = name
  }

  /** Whether a value fits. `outer`: receives what was evaluated, for a schema around this one. */
  check(schema: Schema, value: unknown, at: Place, outer?: Evaluated): boolean {
    this.spend(1)
    if (typeof schema === 'boolean') return schema || this.fail(at, 'is not allowed')
    this.#depth += 1
    if (this.#depth > depthMax) throw new TooCostly(tooManyParts)
    if (this.#read.isEvaluated) this.spend(notingSteps)
    const seen = this.#read.isEvaluated ? nothing() : undefined
    const asked: Asked = { schema, value, at, seen }
    let fits = true
    const own = this.#read.rules.get(schema) ?? []
    this.spend(own.length)
    for (const [keyword, rule] of own) {
      if (rule(this, schema[keyword] as never, value, asked)) continue
      fits = false
      // Other keywords say nothing of a value of another type, and nobody asks for more errors than these.
      if (keyword === 'type' || this.#quiet > 0 || this.errors.length >= errorsShownMax) break
    }
    if (fits && seen !== undefined && outer !== undefined) this.#merge(seen, outer)
    this.#depth -= 1
    return fits
  }

  /** The same of a value that may fit or not: its errors are none of the whole. */
  asks(schema: Schema, value: unknown, at: Place, outer?: Evaluated): boolean {
    this.#quiet += 1
    const fits = this.check(schema, value, at, outer)
    this.#quiet -= 1
    return fits
  }

  /** How many of the schemas fit, up to `enough`. Errors of the others are none of the value if one does. */
  counts(schemas: readonly Schema[], { value, at, seen }: Asked, enough: number): number {
    const before = this.errors.length
    let count = 0
    for (const schema of schemas) {
      if (!this.check(schema, value, at, seen)) continue
      count += 1
      // All are asked where it counts what they evaluate.
      if (count >= enough && seen === undefined) break
    }
    if (count > 0) this.errors.length = before
    return count
  }

  #merge(from: Evaluated, to: Evaluated): void {
    this.spend(from.names.size + from.items.size)
    for (const name of from.names) to.names.add(name)
    for (const item of from.items) to.items.add(item)
  }

  target(reference: string): Schema {
    return this.#read.targets.get(reference) ?? true
  }

  matches(pattern: string, text: string): boolean {
    const known = this.#read.patterns.get(pattern)
    this.spend(1)
    this.spendPattern(known?.costOf(text) ?? 0)
    return known?.test(text) ?? true
  }

  /** Counts what a pattern or format takes, which is more than steps. */
  spendPattern(cost: number): void {
    this.#patternCost -= cost
    if (this.#patternCost < 0) throw new TooCostly(tooMuchText)
    // Both in one check would take as long as both bounds.
    this.spend(cost / 2)
  }

  spend(steps: number): void {
    this.#steps -= steps
    if (this.#steps < 0) throw new TooCostly(tooManyParts)
  }

  spendText(text: string): void {
    this.spend(text.length / charactersPerStep)
  }

  /** Adds an error, unless nobody asks for it. A function makes words that take longer than a step. */
  fail(at: Place, words: string | (() => string)): false {
    if (this.#quiet > 0 || this.errors.length >= errorsShownMax) return false
    const keys: (string | number)[] = []
    for (let place = at; place !== undefined; place = place.up) {
      this.spend(1)
      keys.push(place.key)
    }
    const place = [this.#name, ...keys.reverse()].join('.')
    const text = `${place} ${typeof words === 'string' ? words : words()}`
    this.spendText(text)
    this.errors.push(shorten(text, errorCharsMax))
    return false
  }

  /** Equal for values that are equal as JSON, regardless of key order. The content of a short one is not hashed. */
  digestOf(value: unknown): string {
    if (typeof value !== 'object' || value === null) {
      this.spend(scalarDigestSteps)
      if (typeof value !== 'string') return JSON.stringify(value)
      this.spendText(value)
      // Its length in place of escapes, for which a text is looked through: one digest may have others within it.
      return `${value.length}"${value}`
    }
    this.spend(digestSteps)
    const known = this.#digests.get(value)
    if (known !== undefined) return known
    const isList = Array.isArray(value)
    const parts = isList
      ? value.map((item) => this.digestOf(item))
      : Object.entries(value)
          .sort(([a], [b]) => (a < b ? -1 : 1))
          .map(([key, one]) => `${this.digestOf(key)}:${this.digestOf(one)}`)
    const text = parts.join()
    this.spendText(text)
    const content = text.length <= 64 ? text : `#${Bun.SHA256.hash(text, 'base64')}`
    const digest = isList ? `[${content}]` : `{${content}}`
    this.#digests.set(value, digest)
    return digest
  }
}
