/**
 * The values that a person must enter before the server of a connection can be reached (contract, 14.10): the
 * `configSchema` of a registered server's HTTP option, as the fields of a form. Pure.
 */

import { type ConnectionStatus, isRefusedHeader } from './connection.ts'

/** Ours: values that a person enters for a connection's server. Past it: 400, when the connection is created. */
export const inputFieldsMax = 32
/** Ours: characters of a `configSchema` as JSON: each setup page shows its labels and options. Past it: 400, when the connection is created. */
export const configSchemaCharsMax = 16_384

export type InputPlace = 'headers' | 'query'

/** Values by the name of the header or query parameter that they are sent as. */
export type InputValues = Readonly<Record<InputPlace, Readonly<Record<string, string>>>>

export interface InputField {
  /** The property of the schema. */
  readonly property: string
  /** The header or query parameter. */
  readonly name: string
  /** The field of the form: the same, unless the pages have a field of this name, which means something else. */
  readonly formName: string
  readonly place: InputPlace
  readonly label: string
  readonly description: string | undefined
  readonly isRequired: boolean
  readonly kind: 'text' | 'number' | 'checkbox' | 'select'
  /** Whether the form hides what is typed, and never shows it again. */
  readonly isSecret: boolean
  readonly options: readonly Scalar[]
  readonly default: Scalar | undefined
}

export type Scalar = string | number | boolean

type JsonObject = Readonly<Record<string, unknown>>

/** The part of a status that names the values to enter, and those that are missing. */
export type InputRequired = Extract<ConnectionStatus, { state: 'input_required' }>

/** The fields of a schema, in order, or a `problem`. Optional ones that no form can ask for are left out. */
export function readInputFields(schema: JsonObject): { readonly fields: InputField[] } | { readonly problem: string } {
  const required = new Set(Array.isArray(schema['required']) ? schema['required'] : [])
  const fields: InputField[] = []
  for (const [property, given] of Object.entries(objectIn(schema['properties']))) {
    const part = objectIn(given)
    const isRequired = required.has(property)
    const kind = kindOf(part)
    const { name, place } = placeOf(property, part['x-from'])
    if (kind === undefined || name === '') {
      if (!isRequired || part['default'] !== undefined) continue
      const what = name === '' ? 'has no name' : 'is an object or a list'
      return { problem: `its configuration requires ${JSON.stringify(property)}, which ${what}` }
    }
    // Before a name is compared with all others: a schema may have any number of properties.
    if (fields.length === inputFieldsMax) return { problem: `its configuration has more than ${inputFieldsMax} fields` }
    if (place === 'headers' && (isRefusedHeader(name) || !/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/.test(name)))
      return { problem: `its configuration sends ${JSON.stringify(name)}, which is not a header that can be set` }
    // The form has each name once.
    const same = name.toLowerCase()
    if (same === formTokenField || fields.some((other) => other.name.toLowerCase() === same))
      return { problem: `its configuration has two fields with the name ${JSON.stringify(name)}` }
    fields.push({
      property,
      name,
      formName: pageFields.has(same) ? `value ${name}` : name,
      place,
      label: textIn(part['title']) ?? name,
      description: textIn(part['description']),
      isRequired,
      kind,
      isSecret: part['format'] === 'password' || part['writeOnly'] === true || secretName.test(`${name} ${property}`),
      options: optionsOf(part),
      default: isScalar(part['default']) ? part['default'] : undefined,
    })
  }
  return { fields }
}

/** The hidden field that binds a form to its page. */
export const formTokenField = 'form'
/** Fields of the setup pages: a server that named a value so would get a client secret that is for another server. */
const pageFields = new Set([
  ...[formTokenField, 'client_id', 'client_secret'],
  ...['client', 'register', 'values', 'end', 'again'],
])

/** A schema for what a status asks for, where the connection has no registered server that says more. */
export function schemaOfStatus({ http: { headers = {}, query = {} }, missing }: InputRequired): JsonObject {
  const propertiesOf = (fields: typeof headers, from: 'header' | 'query') =>
    Object.entries(fields).map(([name, { label, description }]) => {
      return [name, { type: 'string', minLength: 1, title: label, description, 'x-from': { [from]: name } }]
    })
  return {
    type: 'object',
    properties: Object.fromEntries([...propertiesOf(headers, 'header'), ...propertiesOf(query, 'query')]),
    required: [...missing.headers, ...missing.query],
  }
}

/** The server of a connection as requests reach it, with what was entered. The URL is '' where there is none. */
export interface UpstreamTarget {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
}

export const noInput: InputValues = { headers: {}, query: {} }

/** Adds what was entered. The connection's own headers and the query of its URL are its owner's, and win. */
export function withInput(
  mcpUrl: string | null,
  headers: UpstreamTarget['headers'],
  input: InputValues,
): UpstreamTarget {
  if (input === noInput) return { url: mcpUrl ?? '', headers }
  const own = new Set(Object.keys(headers).map((name) => name.toLowerCase()))
  const entered = Object.entries(input.headers).filter(([name]) => !own.has(name.toLowerCase()))
  return { url: withQuery(mcpUrl ?? '', input.query), headers: { ...headers, ...Object.fromEntries(entered) } }
}

/** The URL to the letter, and after it the parameters that it does not have. */
function withQuery(url: string, query: InputValues['query']): string {
  const more = Object.entries(query).filter(([name]) => !namesInQuery(url).has(name))
  if (url === '' || more.length === 0) return url
  // A fragment is never sent.
  const [sent = ''] = url.split('#')
  return `${sent}${sent.includes('?') ? '&' : '?'}${new URLSearchParams(more)}`
}

function namesInQuery(url: string): Set<string> {
  return new Set(url === '' ? [] : new URL(url).searchParams.keys())
}

/** Required fields that requests to this target send no value for. */
function lacking(fields: readonly InputField[], { url, headers }: UpstreamTarget): InputField[] {
  const inHeaders = new Set(Object.keys(headers).map((name) => name.toLowerCase()))
  const inQuery = namesInQuery(url)
  return fields.filter(({ isRequired, place, name }) => {
    return isRequired && !(place === 'headers' ? inHeaders.has(name.toLowerCase()) : inQuery.has(name))
  })
}

export function defaultsIn({ properties }: JsonObject): JsonObject {
  const values = Object.entries(objectIn(properties)).map(([name, part]) => [name, objectIn(part)['default']])
  return Object.fromEntries(values.filter(([, value]) => value !== undefined))
}

/** The defaults of required fields without another value: the server expects to be sent one. */
export function defaultsFor(fields: readonly InputField[], target: UpstreamTarget): InputValues {
  const values = lacking(fields, target).flatMap(({ property, default: value }) =>
    value === undefined ? [] : [[property, value] as const],
  )
  return placeValues(fields, new Map(values))
}

/** The status of a connection that lacks required values; undefined if it lacks none. */
export function inputRequired(fields: readonly InputField[], target: UpstreamTarget): InputRequired | undefined {
  const missing = lacking(fields, target)
  if (missing.length === 0) return undefined
  const fieldsAt = (place: InputPlace) =>
    Object.fromEntries(
      fields
        .filter((field) => field.place === place)
        .map(({ name, label, description, isRequired }) => [
          name,
          { label, ...(description !== undefined && { description }), ...(isRequired && { required: true }) },
        ]),
    )
  const missingAt = (place: InputPlace) => missing.flatMap((field) => (field.place === place ? [field.name] : []))
  return {
    state: 'input_required',
    http: { headers: fieldsAt('headers'), query: fieldsAt('query') },
    missing: { headers: missingAt('headers'), query: missingAt('query') },
  }
}

/** Values by place, each as the text that is sent. */
export function placeValues(fields: readonly InputField[], values: ReadonlyMap<string, Scalar>): InputValues {
  const valuesAt = (wanted: InputPlace) =>
    Object.fromEntries(
      fields.flatMap(({ property, name, place }) => {
        const value = values.get(property)
        return value === undefined || place !== wanted ? [] : [[name, String(value)]]
      }),
    )
  return { headers: valuesAt('headers'), query: valuesAt('query') }
}

/** Names under which secrets travel: those of the contract, and the header that is always a credential. */
const secretName = /key|token|secret|password|authorization/i

function kindOf(part: JsonObject): InputField['kind'] | undefined {
  if (optionsOf(part).length > 0) return 'select'
  const types = [part['type']].flat().filter((type) => type !== 'null')
  if (types.includes('object') || types.includes('array')) return undefined
  if (types.includes('string')) return 'text'
  if (types.includes('number') || types.includes('integer')) return 'number'
  return types.includes('boolean') ? 'checkbox' : 'text'
}

function optionsOf(part: JsonObject): Scalar[] {
  const options = Array.isArray(part['enum']) ? part['enum'] : [part['const']]
  return [...new Set(options.filter(isScalar))]
}

/** `x-from` is not of JSON Schema: it says as which header or query parameter a value is sent. */
function placeOf(property: string, from: unknown): { readonly name: string; readonly place: InputPlace } {
  const { header, query } = objectIn(from)
  if (typeof header === 'string') return { name: header, place: 'headers' }
  return { name: typeof query === 'string' && query !== '' ? query : property, place: 'query' }
}

function isScalar(value: unknown): value is Scalar {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
}

function textIn(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

function objectIn(value: unknown): JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : {}
}
