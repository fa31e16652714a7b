/**
 * `postern token explain`: prints a token's blocks in words, and what each says about one described request, with the
 * code that the server explains with. It cannot know what only a server knows: whether the connection exists, and
 * whether the user may still access the namespace.
 */

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { isLive } from '../auth/authenticate.ts'
import { createDirectory } from '../auth/directory.ts'
import { clockRefusal, unverifiedClaims, verifyToken } from '../auth/service-token.ts'
import { readKeyRing } from '../auth/signing-keys.ts'
import { CommandError, PlatformError } from '../errors.ts'
import { describing } from '../features/explain/described-request.ts'
import { explanationOf } from '../features/explain/explanation.ts'
import { openExistingDataFolder, type Place } from '../maintenance/data-folder.ts'
import { DescribedRequest } from '../model/explain.ts'
import type { ServiceTokenClaims } from '../model/token.ts'
import { oneLine } from '../ops/escape-control.ts'
import { type Block, readConstraint } from '../policy/block.ts'
import { explainingConstraints } from '../policy/explain.ts'
import { problemText, validatorOf } from '../schema/check.ts'
import { drained } from '../schema/steps.ts'
import { storedBaseUrl } from './first-start.ts'
import { readJson, readPairs, readToken } from './json-input.ts'
import type { Terminal } from './terminal.ts'

/** All but the place and the policy describe the request. */
export interface ExplainFlags extends Place {
  readonly policy?: string
  readonly namespace?: string
  readonly resource?: string
  readonly operation?: string
  readonly connection?: string
  readonly metadata?: readonly string[]
  readonly tool?: string
  readonly args?: string
  readonly message?: string
  /** The name of `message` in the contract. */
  readonly rpc?: string
}

export const notToken = 'this is not a service token of postern: give the whole text that `postern token mint` printed'

const needsServer = 'needs a running postern: add --url with its base URL'

/** Resolves with 1 if the token, or a described request, is refused. Throws CommandError; 2 for wrong usage. */
export async function explainToken(
  flags: ExplainFlags,
  { stdout, stderr }: Terminal,
  given: string | undefined,
): Promise<0 | 1> {
  for (const flag of ['policy', 'connection', 'tool', 'args'] as const)
    if (flags[flag] !== undefined) throw new CommandError(`--${flag}: ${needsServer}`, 2)
  if (given === undefined) throw new CommandError(`no token: give one. Your own credential ${needsServer}`, 2)
  const now = new Date()
  if (given === '-' && (flags.message ?? flags.rpc) === '-')
    throw new CommandError('only one of the token and --message can be -, stdin', 2)
  const token = readToken(given)
  // Unverified, because an expired or foreign token is what people ask about. The lines below say what is wrong.
  const claims = unverifiedClaims(token)
  if (claims === undefined) throw new CommandError(notToken)
  const blocks = claims.policy.map((constraint, index) => {
    const read = readConstraint(constraint)
    if ('problem' in read)
      throw new CommandError(
        `policy[${index}] cannot be read, so the token is refused everywhere: ${read.problem.message}`,
      )
    return read.block
  })
  const known = await lookUp(token, claims, flags, stderr)
  const lines = [...tokenLines(claims, signatureLines(flags.data, known), now), ...blocks.flatMap(blockLines)]
  const within = claims.org === undefined ? '' : ' within the organization'
  if (blocks.length === 0) lines.push(`No policy: it may do all that its user may${within}.`)
  const described = describedBy(flags)
  const refusal = reasonItIsRefused(claims, known, now)
  const answer = described && requestLines(blocks, described, refusal)
  if (answer !== undefined) lines.push('', ...answer.lines)
  stdout(`${lines.map(oneLine).join('\n')}\n`)
  return (answer?.allowed ?? refusal === undefined) ? 0 : 1
}

/** The reason why the token is refused for every request, or undefined. */
function reasonItIsRefused(claims: ServiceTokenClaims, known: Known, now: Date): string | undefined {
  if (known?.isForged === true) return 'was not signed here'
  if (clockRefusal(claims, Math.floor(now.getTime() / 1000)) === 'expired') return 'has expired'
  if (known !== undefined && known.revoked.length > 0) return 'is revoked'
  return known?.otherUrl === undefined ? undefined : 'was issued under another base URL'
}

/** The token's claims: who, from whom, until when. Times in UTC, as in the audit log. */
function tokenLines(claims: ServiceTokenClaims, signatureLines: readonly string[], now: Date): string[] {
  const { sub, key, org, jti, par = [], iat, exp } = claims
  const time = (seconds: number) => new Date(seconds * 1000).toISOString()
  const left = exp - Math.floor(now.getTime() / 1000)
  return [
    `Token ${jti} acts for ${sub} (${key})${org === undefined ? '' : ` within ${org}`}`,
    ...par.map((parent) => `  minted with ${parent}`),
    `  issued  ${time(iat)} by ${claims.iss}`,
    `  expires ${time(exp)} ${left > 0 ? `(${left} s left)` : '(expired)'}`,
    ...signatureLines.map((line) => `  ${line}`),
    '',
  ]
}

/** The facts of the data folder about the token; undefined if there is none. */
type Known = Awaited<ReturnType<typeof lookUp>>

/** Looks the token up in the data folder. Undefined if there is no such folder: it is never created. */
async function lookUp(
  token: string,
  { iss, iat, jti, par = [], key }: ServiceTokenClaims,
  place: Place,
  stderr: Terminal['stderr'],
) {
  if ((place.store ?? '') === '' && !existsSync(join(place.data, 'store'))) return undefined
  await using folder = await openExistingDataFolder(place, stderr)
  const { store, secrets } = folder
  const keys = await readKeyRing(store, secrets.sealingKey)
  const verified = keys && verifyToken(token, { keys, issuer: iss, path: undefined, nowSeconds: iat })
  const directory = await createDirectory(store).current()
  const revoked: string[] = []
  for (const id of [...par, jti]) if (await directory.isRevoked(id)) revoked.push(id)
  if (!isLive(await directory.apiKey(key))) revoked.push(key)
  const baseUrl = await storedBaseUrl(store)
  return {
    /** None of its keys signed the token, whose age does not count. */
    isForged: verified === undefined || 'refused' in verified,
    /** Revoked ids among the token, its ancestors and its API key. */
    revoked,
    /** The base URL that the store was last served under, if the token names another one: the server refuses it. */
    otherUrl: baseUrl === iss ? undefined : baseUrl,
  }
}

/** The result of verifying the signature, and why the token is refused, if it is. */
function signatureLines(data: string, known: Known): string[] {
  if (known === undefined)
    return [`signature, revocation and base URL not checked: ${data} is no data folder (name one with --data)`]
  const { isForged, revoked, otherUrl } = known
  if (isForged) return [`signature does NOT verify with any key in ${data}: do not trust the claims above`]
  return [
    `signed by a key in ${data}`,
    ...revoked.map((id) => `REVOKED by ${id}: it is refused everywhere`),
    ...(otherUrl === undefined ? [] : [`issued under another base URL: ${data} is served under ${otherUrl}`]),
  ]
}

/** One block in words. Values of one field are alternatives (`or`); fields, and facts of one set, add up (`and`). */
function blockLines(block: Block, index: number): string[] {
  const words: string[] = []
  if (block.namespaces) words.push(`namespaces: ${block.namespaces.join(' or ')}`)
  if (block.resources) words.push(`resources: ${block.resources.join(' or ')}`)
  if (block.operations) words.push(`operations: ${block.operations.join(' or ')}`)
  if (block.metadata) {
    const sets = block.metadata.map((set) =>
      set.map(([key, value]) => `${key} = ${JSON.stringify(value)}`).join(' and '),
    )
    words.push(`metadata: ${sets.join(', or ')}`)
  }
  for (const { path, pattern } of block.rpc ?? []) {
    const bound = pattern.includes('^') || pattern.includes('$')
    const note = bound ? '' : ' (anywhere in the value: with ^ and $, it is the whole value)'
    words.push(`rpcReqMatch: ${path} contains a match of ${pattern}${note}`)
  }
  if (block.ttlSeconds !== undefined) words.push(`ttl: ${block.ttlSeconds} s (already in the expiry)`)
  return [`policy[${index}] allows only`, ...words.map((line) => `  ${line}`)]
}

/** The verdict of each constraint, then the whole one. `invalidReason`: why the token is refused anyway. */
function requestLines(
  blocks: readonly Block[],
  described: DescribedRequest,
  invalidReason: string | undefined,
): { readonly lines: string[]; readonly allowed: boolean } {
  const { request, isAboutConnection } = readRequest(described)
  const constraints = drained(explainingConstraints(blocks, request))
  const policy = { blocks, inherited: 0, token: undefined }
  const { verdict, words } = explanationOf(policy, { outside: [], isAboutConnection }, constraints)
  const where = described.namespace === undefined ? '' : ` in ${described.namespace}`
  return {
    lines: [
      `Request: ${request.operation} ${request.resource}${where}`,
      ...constraints.map((one) => `  ${one.verdict.padEnd(8)} ${one.place}  ${one.words}`),
      invalidReason === undefined ? words : `Refused: the token ${invalidReason}, 401.`,
      'Connections, their tools, and the access of its user were not looked at.',
    ],
    allowed: invalidReason === undefined && verdict !== 'refuse',
  }
}

/** Throws CommandError 2 for a description that contradicts itself, and for a message that no endpoint would take. */
function readRequest(described: DescribedRequest) {
  try {
    return drained(describing(described))
  } catch (thrown) {
    throw thrown instanceof PlatformError ? new CommandError(thrown.message, 2) : thrown
  }
}

/** The request that the flags describe; undefined if they describe none. Throws CommandError 2 for a wrong flag. */
export function describedBy(flags: Omit<ExplainFlags, 'data'>): DescribedRequest | undefined {
  const { resource, operation, metadata, args, message = flags.rpc } = flags
  const all = [flags.namespace, resource, operation, flags.connection, metadata, flags.tool, args, message]
  if (all.every((one) => one === undefined)) return undefined
  const namespace = flags.namespace ?? (process.env['POSTERN_NAMESPACE'] || undefined)
  // As `postern tool call` names a tool.
  const [, first, own] = /^([^.]+)\.(.+)$/.exec(flags.connection === undefined ? (flags.tool ?? '') : '') ?? []
  const { connection = first } = flags
  const tool = own ?? flags.tool
  if (connection !== undefined && namespace === undefined)
    throw new CommandError(`${connection}: name the namespace of this connection, with --namespace (-n)`, 2)
  const isCall = tool !== undefined || message !== undefined
  const given = {
    ...{ namespace, connection, tool, metadata: metadata && readPairs(metadata) },
    resource: resource ?? 'connections',
    operation: operation ?? (isCall ? 'execute' : 'read'),
    arguments: args === undefined ? undefined : readJson(args, '--args'),
    message: message === undefined ? undefined : readJson(message, '--message'),
  }
  const described = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
  const [problem] = describedShape.problems(described, 1)
  if (problem !== undefined) throw new CommandError(`--${problemText(problem)}`, 2)
  return described
}

const describedShape = validatorOf(DescribedRequest)
