/**
 * The values that a person enters for the server of a connection on its setup page (contract, 14.10): read from the
 * form, checked by the server's schema, kept sealed, and tried at once.
 */

import type { DirectorySnapshot } from '../../auth/directory.ts'
import { hasAuthorization, openHeaders, sealInput, targetOf } from '../../auth/sealed-parts.ts'
import { withSetupUrl } from '../../auth/setup-links.ts'
import { serverJsonOf } from '../../auth/stored-servers.ts'
import { conflict, PlatformError } from '../../errors.ts'
import { allowanceOf } from '../../fairness/allowance.ts'
import type { Form } from '../../http/form.ts'
import { urlCharsMax } from '../../limits.ts'
import { type ConnectionStatus, HeaderValue } from '../../model/connection.ts'
import {
  configSchemaCharsMax,
  defaultsIn,
  type InputField,
  type InputValues,
  placeValues,
  readInputFields,
  type Scalar,
  schemaOfStatus,
  type UpstreamTarget,
  withInput,
} from '../../model/input-fields.ts'
import type { ServerDetail } from '../../model/server.ts'
import { validatorOf } from '../../schema/check.ts'
import type { StoredConnection } from '../../storage/connections.ts'
import { readingServer } from '../../storage/directory-records.ts'
import { type ProbeResult, probeServer } from '../../upstream/probe.ts'
import { UpstreamError } from '../../upstream/upstream.ts'
import { replaceStored, type UpstreamSignInDeps } from './oauth-client.ts'
import { enteredPage, inputPage, type Visit } from './setup-pages.ts'
import { requireVisit } from './visit.ts'

/** A server's configuration: its JSON Schema, and the same as fields of a form. */
export interface Config {
  readonly schema: Readonly<Record<string, unknown>>
  readonly fields: readonly InputField[]
}

const noConfig: Config = { schema: {}, fields: [] }

/** The configuration of a server's HTTP option, or what makes it impossible to ask for. */
export function readConfig({ connections }: ServerDetail): Config | { readonly problem: string } {
  const schema = connections.find((option) => option.type === 'http')?.configSchema ?? {}
  if (JSON.stringify(schema).length > configSchemaCharsMax)
    return { problem: `its configuration has more than ${configSchemaCharsMax} characters` }
  const read = readInputFields(schema)
  return 'problem' in read ? read : { schema, fields: read.fields }
}

/** The configuration of a connection's server: as registered now, or else as its status tells. A mock has no fields. */
export async function configOf(
  request: Request,
  directory: Pick<DirectorySnapshot, 'serverJson'>,
  { connection, privatePart: { server } }: StoredConnection,
): Promise<Config> {
  if (connection.mock?.enabled === true) return noConfig
  const json = server === undefined ? undefined : await serverJsonOf(directory, request, server) // 429
  if (json !== undefined) {
    const read = readConfig(await allowanceOf(request).parse(json.length, readingServer(json))) // 429
    if (!('problem' in read)) return read
  }
  if (connection.status.state !== 'input_required') return noConfig
  const schema = schemaOfStatus(connection.status)
  const read = readInputFields(schema)
  return 'problem' in read ? noConfig : { schema, fields: read.fields }
}

/**
 * Whether the setup page asks for values: they are missing, or may be wrong. Where the server wants a sign-in instead,
 * and the values do not stand in its way, the page is about that.
 */
export function isInputDue({ stored, ref }: Visit, { fields }: Config, headersKey: Buffer): boolean {
  if (fields.length === 0 || stored.privatePart.tokens !== undefined) return false
  if (stored.connection.status.state !== 'auth_required') return true
  return hasAuthorization(targetOf(stored, ref, headersKey).headers)
}

/** Answers a form: with the form again (400), or with what came of the values (200). Throws `conflict`. */
export async function enterInput(
  deps: UpstreamSignInDeps,
  visit: Visit,
  config: Config,
  form: Form,
): Promise<Response> {
  const values = readValues(config.fields, form)
  const again = (problem: string, status: number) => inputPage({ ...visit, ...config, values, problem, status })
  const wrong = await problemOf(visit.request, config, values)
  if (wrong !== undefined) return again(wrong, 400)
  const { connection, privatePart } = visit.stored
  const input = placeValues(config.fields, values)
  const target = withInput(connection.mcpUrl, openHeaders(privatePart, visit.ref, deps.headersKey), input)
  const unsendable = sendingProblem(input, target)
  if (unsendable !== undefined) return again(unsendable, 400)
  const status = await keep(deps, visit, input, target)
  if (status.state === 'error') return again(`postern stored your values, and tried them: ${status.message}`, 200)
  const wantsSignIn = status.state === 'auth_required'
  if (wantsSignIn && status.setupUrl === undefined) return again('The server refuses these values.', 200)
  return enteredPage(visit, wantsSignIn)
}

/** The values as the schema means them. A field that was left empty is absent, or has its default if it is required. */
function readValues(fields: readonly InputField[], form: Form): Map<string, Scalar> {
  const values = new Map<string, Scalar>()
  for (const field of fields) {
    const value = readValue(field, form.one(field.formName)) // 400
    const chosen = value ?? (field.isRequired ? field.default : undefined)
    if (chosen !== undefined) values.set(field.property, chosen)
  }
  return values
}

/** Text that is none of the options, or no number, stays text: the schema says what is wrong with it. */
function readValue({ kind, options, isRequired, default: usual }: InputField, text: string | undefined) {
  // A browser sends nothing for a box that is not ticked.
  if (kind === 'checkbox') return text !== undefined || (isRequired || usual !== undefined ? false : undefined)
  if (text === undefined || text === '') return undefined
  if (kind === 'select') return options.find((option) => String(option) === text) ?? text
  return kind === 'number' && /^[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?$/i.test(text) ? Number(text) : text
}

/** The first fault that the schema finds in the values, if any. Throws `conflict` if it cannot be compiled, and 429. */
async function problemOf(request: Request, { schema, fields }: Config, values: ReadonlyMap<string, Scalar>) {
  const { readingSchema } = await import('../../schema/json-schema.ts')
  function* checking() {
    const check = yield* readingSchema(schema, 'input')
    // Properties without a value, such as those that the form does not ask for, get their default.
    return check({ ...defaultsIn(schema), ...Object.fromEntries(values) })
  }
  try {
    const problem = await allowanceOf(request).run(checking())
    return problem === undefined ? undefined : inLabels(problem, fields)
  } catch (error) {
    if (error instanceof PlatformError) throw error
    throw conflict(`The configuration of this server cannot be checked: ${(error as Error).message}`)
  }
}

/** Names the fields as the form does, and not as the schema. */
function inLabels(problem: string, fields: readonly InputField[]): string {
  const labelOf = (property: string) => fields.find((field) => field.property === property)?.label ?? property
  return problem
    .replaceAll(
      /\binput must have required property '([^']*)'/g,
      (_, property: string) => `${labelOf(property)}: is missing`,
    )
    .replaceAll(/\binput\.(\S+) /g, (_, property: string) => `${labelOf(property)}: `)
}

const headerValue = validatorOf(HeaderValue)

/** The problem that keeps the values from being sent; undefined if there is none. */
function sendingProblem(input: InputValues, { url }: UpstreamTarget): string | undefined {
  for (const [name, text] of Object.entries(input.headers)) {
    const [problem] = headerValue.problems(text, 1)
    if (problem !== undefined) return `${name}: ${problem.message}`
  }
  return url.length > urlCharsMax
    ? `The values are too long: the URL would have more than ${urlCharsMax} characters`
    : undefined
}

/** Asks the server with the values, and keeps them whatever it answers. Throws `conflict` if the record has changed. */
async function keep(
  deps: UpstreamSignInDeps,
  visit: Visit,
  input: InputValues,
  target: UpstreamTarget,
): Promise<ConnectionStatus> {
  const { links, audit, headersKey } = deps
  const { ref, stored, holder, by } = visit
  const { url, headers } = target
  const { status: probed, serverInfo } = await probeServer(deps.upstream, url, headers, { holder }).catch(unreachable)
  const status = hasAuthorization(headers) ? probed : withSetupUrl(probed, links.urlOf(ref))
  const { input: _, ...rest } = stored.privatePart
  const { setups = 0 } = rest
  const privatePart = {
    ...rest,
    ...sealInput(input, ref, headersKey),
    // Tickets of before are void: their holders must not replace values that work.
    ...(status.state === 'connected' && { setups: setups + 1 }),
  }
  const connection = { ...stored.connection, status, ...(serverInfo && { serverInfo }) }
  await requireVisit(deps, visit) // 409, 404, 403
  if (!(await replaceStored(deps, ref, stored, { connection, privatePart })))
    throw conflict('The connection was changed meanwhile: open the page again')
  await audit.record('connection.changed', { ...by, ...ref, what: 'input' })
  return status
}

function unreachable(error: unknown): ProbeResult {
  if (!(error instanceof UpstreamError)) throw error
  return { status: { state: 'error', message: `The server could not be reached: ${error.message}` } }
}
