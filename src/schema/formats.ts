/** Whether texts and numbers are in a `format` of JSON Schema. */

import { fastFormats, fullFormats } from 'ajv-formats/dist/formats.js'
import { isUrl } from './url-host.ts'

/** Ours: characters of a text that may fit a `format`; for some formats, the time grows with the square of the length. Past it: the text fits no `format`. */
export const formatCharsMax = 2048
/** Cost of a character that is held to a `format`, in the unit of patterns. Past it: as for `mockPatternCostMax`. */
const formatCharacterCost = 10
/** Characters of the text that make each of them cost one more: some formats take the square of its length. */
const formatCharsPerCost = 64

/** The pattern of `url` would take the third power of the length. The fast ones of dates and times accept a 39th day. */
const formats: Readonly<Record<string, unknown>> = {
  ...fastFormats,
  date: fullFormats.date,
  time: fullFormats.time,
  'date-time': fullFormats['date-time'],
  'iso-time': fullFormats['iso-time'],
  'iso-date-time': fullFormats['iso-date-time'],
  url: (text: string) => /^(?:https?|ftp):\/\/\S+$/i.test(text) && isUrl(text),
}

interface Format {
  readonly type?: 'number' | 'string'
  readonly validate?: unknown
}

/** A value fits a format that nobody knows, and one for another type. `spend`: counts the cost before a look. */
export function isInFormat(format: string, value: unknown, spend: (cost: number) => void): boolean {
  const known = Object.hasOwn(formats, format) ? formats[format] : true
  const isDescribed = typeof known === 'object' && !(known instanceof RegExp)
  const { type = 'string', validate = known } = isDescribed ? (known as Format) : {}
  if (typeof value !== type || validate === true) return true
  if (typeof value === 'string') {
    // A document may be in it, and its time is that of the length.
    const isOfDocuments = format === 'byte'
    if (value.length > formatCharsMax && !isOfDocuments) return false
    spend((value.length + 1) * (isOfDocuments ? 1 : formatCharacterCost + value.length / formatCharsPerCost))
  }
  return validate instanceof RegExp ? validate.test(String(value)) : (validate as (value: unknown) => boolean)(value)
}
