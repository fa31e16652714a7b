/** Texts that suit a field's name: a city for `city`, a phrase from the scenario for `summary`. */

import type { Faker } from '@faker-js/faker'
import { patternOf } from '../../schema/evaluation.ts'
import { costToCompile } from '../../schema/patterns.ts'
import type { JsonSchema } from '../../schema/schema-keywords.ts'

/** Cost of a pattern (`costOf`) that is a step of a try. */
const patternCostPerStep = 250

/** The sources for texts. */
export interface Likeness {
  /** Counts steps of a try. Throws past their bound. */
  readonly step: (steps: number) => void
  /** Already seeded. */
  readonly faker: Faker
  /** The phrases of the scenario, or of the tool's description if there is none. */
  readonly phrases: readonly string[]
  /** The same in full. */
  readonly scenarioText: string
}

type Make = (fieldValue: Likeness, name: string) => string

/** Generators by field name, in lower case with words joined by `_`. The first match wins, so order matters. */
const generators: readonly (readonly [name: RegExp, make: Make])[] = [
  [/e_?mail$/, ({ faker }) => faker.internet.exampleEmail()],
  [/(?:url|uri|link|href)$/, ({ faker }) => `https://example.com/${faker.lorem.slug(2)}`],
  [/first_name|given_name/, ({ faker }) => faker.person.firstName()],
  [/last_name|family_name|surname/, ({ faker }) => faker.person.lastName()],
  [/(?:user|customer|contact|author|attendee|person|full|display)_name$/, ({ faker }) => faker.person.fullName()],
  [
    /^(?:assignee|owner|author|reporter|organizer|creator|created_by|updated_by|requester|manager)$/,
    ({ faker }) => faker.person.fullName(),
  ],
  [/user_?(?:id)?$|login|handle/, ({ faker }) => faker.person.firstName().toLowerCase()],
  [
    /company|account$|account_name|customer|vendor|supplier|organi[sz]ation|brand|merchant/,
    ({ faker }) => faker.company.name(),
  ],
  [/city|town|location(?:_name)?$|place/, ({ faker }) => faker.location.city()],
  [/country_code/, ({ faker }) => faker.location.countryCode()],
  [/country/, ({ faker }) => faker.location.country()],
  [/region|state|province|county/, ({ faker }) => faker.location.state()],
  [/street|address/, ({ faker }) => faker.location.streetAddress()],
  [/zip|post(?:al)?_?code/, ({ faker }) => faker.location.zipCode()],
  [/time_?zone|^tz$/, ({ faker }) => faker.location.timeZone()],
  [/phone|mobile|fax/, ({ faker }) => faker.phone.number({ style: 'international' })],
  [/currency/, ({ faker }) => faker.finance.currencyCode()],
  [/language|locale/, () => 'en'],
  [/version/, ({ faker }) => faker.system.semver()],
  [/(?:^|_)ip(?:_address)?$/, ({ faker }) => faker.internet.ipv4()],
  [/file(?:_?name)?$|path$/, ({ faker }) => faker.system.fileName()],
  [/branch/, ({ faker }) => faker.git.branch()],
  [/commit|sha$|hash$/, ({ faker }) => faker.git.commitSha()],
  [/colou?r/, ({ faker }) => faker.color.human()],
  [/product|item_name/, ({ faker }) => faker.commerce.productName()],
  [/categor|department/, ({ faker }) => faker.commerce.department()],
  [/tag|label|keyword|topic/, ({ faker }) => faker.word.noun()],
  [
    /(?:^|_)(?:id|key|code|ref|reference|number|sku|token|cursor)$/,
    ({ faker }, name) => `${name.slice(0, 3)}-${faker.string.alphanumeric({ length: 6, casing: 'lower' })}`,
  ],
  [
    /description|body|content|markdown|notes?$|details?$|message|text|comment|excerpt|snippet|reason/,
    ({ scenarioText }) => scenarioText,
  ],
  [
    /title|subject|headline|summary|event|topic|question|answer|caption|label/,
    ({ faker, phrases }) => faker.helpers.arrayElement(phrases),
  ],
  [/name$/, ({ faker }) => capitalise(`${faker.word.adjective()} ${faker.word.noun()}`)],
]

const noun: Make = ({ faker }) => faker.word.noun()

/** A text for a field of this name, cut to `maxLength`. Undefined if it violates `minLength` or `pattern`. */
export function textFor(name: string, schema: JsonSchema, fieldValue: Likeness): string | undefined {
  const words = name
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replace(/[^A-Za-z0-9]+/g, '_')
    .toLowerCase()
  const make = generators.find(([pattern]) => pattern.test(words))?.[1] ?? noun
  const text = make(fieldValue, words)
  const {
    minLength = 0,
    maxLength = Number.POSITIVE_INFINITY,
    pattern,
  } = schema as { minLength?: number; maxLength?: number; pattern?: string }
  const cut = [...text].slice(0, maxLength).join('').trimEnd()
  if ([...cut].length < minLength) return undefined
  if (pattern === undefined) return cut
  fieldValue.step(costToCompile(pattern) / patternCostPerStep)
  const { costOf, test } = patternOf(pattern)
  fieldValue.step(costOf(cut) / patternCostPerStep)
  return test(cut) ? cut : undefined
}

export function capitalise(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1)
}

/** `Rain in the north: two trains are late.` -> its parts, each with a capital. */
export function phrasesOf(text: string): string[] {
  const parts = text
    .split(/[.:;,!?\n]+|\s[-–—]\s/)
    .map((part) => part.trim())
    .filter((part) => part.length > 2)
  return parts.length === 0 ? [text] : parts.map(capitalise)
}
