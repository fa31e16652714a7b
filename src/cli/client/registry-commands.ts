/** `postern registry`: the registry of a namespace, by which editors find its endpoint (contract, 20.13). */

import { Type } from '@sinclair/typebox'
import type { Command } from 'commander'
import { isSecureUrl } from '../../http/guard.ts'
import { RegistryLinkList, RegistryLinkMade } from '../../model/registry.ts'
import { RegistryEntry } from '../../model/server-json.ts'
import { oneLine } from '../../ops/escape-control.ts'
import { validatorOf } from '../../schema/check.ts'
import { countText } from '../count-text.ts'
import { group } from '../options.ts'
import { noNamespace, pagesByCursor, pathSegment, queryOf, unreachableText } from './api-client.ts'
import type { CommandContext, RemoteCommands } from './context.ts'

/** Time for one request to an endpoint. Past it: the check fails. */
const probeMs = 10_000

const Page = Type.Object({
  servers: Type.Array(Type.Unknown()),
  metadata: Type.Object({ nextCursor: Type.Optional(Type.String()) }),
})
const Setting = Type.Object({ registry: Type.String() })
const entryShape = validatorOf(RegistryEntry)

export function addRegistryCommands(postern: Command, { remote, inNamespace }: RemoteCommands): void {
  const registry = group(postern, 'registry').description('check the registry of a namespace, and make links to it')
  remote(registry, 'check', 'check that editors can use each entry; exit with code 1 if not')
    .argument('<namespace>', 'the namespace')
    .run(async (context: CommandContext<{ json?: boolean }>, namespace: string) => {
      const lines = await checks(context, namespace)
      if (context.flags.json === true) context.print({ checks: lines })
      else for (const { isOk, text } of lines) context.stdout(`${isOk ? 'ok' : 'fail'} ${oneLine(text)}\n`)
      return lines.every(({ isOk }) => isOk) ? 0 : 1
    })
  inNamespace(registry, 'link', 'create a link for editors that cannot send a credential')
    .option('--name <name>', 'a name for people')
    .run(async (context: CommandContext<{ name?: string }>) => {
      const namespace = await context.namespace()
      const options = { body: { name: context.flags.name }, reads: RegistryLinkMade }
      const made = await context.request('POST', linksOf(namespace), options)
      context.say(made, made.url)
      const setting = await context.request('GET', `/namespaces/${pathSegment(namespace)}`, { reads: Setting })
      if (setting.registry === 'off') context.stderr(`${offText(namespace)}\n`)
    })
  inNamespace(registry, 'list', 'list links')
    .alias('links')
    .run(async (context) => {
      const found = await context.request('GET', linksOf(await context.namespace()), { reads: RegistryLinkList })
      const rows = found.links.map(({ id, name, createdAt }) => [id, name, createdAt])
      context.show(found, ['LINK', 'NAME', 'CREATED'], rows)
    })
  inNamespace(registry, 'unlink', 'revoke a link: nobody can read the registry through it from then on')
    .argument('<id>', 'the id of the link')
    .run(async (context, id: string) => {
      const path = `${linksOf(await context.namespace())}/${pathSegment(id)}`
      const missing = `there is no link ${id}: see \`postern registry list\``
      context.say(await context.request('DELETE', path, { missing }), `the link ${id} has ended`)
    })
}

const linksOf = (namespace: string) => `/namespaces/${pathSegment(namespace)}/registry-links`

const offText = (namespace: string) =>
  `${namespace}: the registry is off, and nobody can read it: \`postern namespace set ${namespace} --registry members\``

interface Check {
  readonly isOk: boolean
  readonly text: string
}

/** The setting, then each entry. Throws CommandError. */
async function checks(context: CommandContext, namespace: string): Promise<Check[]> {
  const { request } = context
  const about = { ...noNamespace(namespace), reads: Setting }
  const { registry } = await request('GET', `/namespaces/${pathSegment(namespace)}`, about)
  if (registry === 'off') return [{ isOk: false, text: offText(namespace) }]
  const { links } = await request('GET', linksOf(namespace), { reads: RegistryLinkList })
  const isReadable = registry === 'public' || links.length > 0
  const through = links.length === 0 ? 'and has no link' : `and through ${countText(links.length, 'link')}`
  const how = registry === 'public' ? 'anybody' : `members, ${through}`
  const remedy = isReadable
    ? ''
    : `: editors send no credential; create a link with \`postern registry link -n ${namespace}\``
  const lines = [{ isOk: isReadable, text: `${namespace}: the registry is open to ${how}${remedy}` }]
  const path = `/registry/${pathSegment(namespace)}/v0.1/servers`
  const pages = pagesByCursor(context, async (cursor) => {
    const { servers, metadata } = await request('GET', `${path}${queryOf({ cursor })}`, { reads: Page })
    return { servers, nextCursor: metadata.nextCursor }
  })
  for await (const { servers } of pages) for (const entry of servers) lines.push(await checkEntry(entry))
  return lines
}

async function checkEntry(entry: unknown): Promise<Check> {
  if (!entryShape.isValid(entry)) return { isOk: false, text: `an entry is not valid: ${JSON.stringify(entry)}` }
  const { name, description, remotes = [] } = entry.server
  const [url = '', ...others] = remotes.map((one) => one.url ?? '')
  const problem =
    others.length > 0 || !URL.canParse(url) || description.length > 100
      ? 'must have one URL, and a description of at most 100 characters'
      : isSecureUrl(url)
        ? await signInProblem(url)
        : `${url} does not begin with https`
  return { isOk: problem === undefined, text: problem === undefined ? `${name}: ${url}` : `${name}: ${problem}` }
}

/** Whether a client without a credential is led to the sign-in of this URL; undefined if it is. */
async function signInProblem(url: string): Promise<string | undefined> {
  const refused = await fetched(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' })
  if (typeof refused === 'string') return unreachableText(url, refused)
  if (refused.status !== 401) return `${url} answers ${refused.status} without a credential, not 401`
  const metadata = /resource_metadata="([^"]+)"/.exec(refused.headers.get('www-authenticate') ?? '')?.[1]
  if (metadata === undefined) return `${url} does not name its protected-resource metadata`
  const answer = await fetched(metadata, {})
  if (typeof answer === 'string') return unreachableText(metadata, answer)
  const { resource } = ((await answer.json().catch(() => undefined)) ?? {}) as { resource?: unknown }
  return resource === url ? undefined : `${metadata} is about ${JSON.stringify(resource)}, not ${url}`
}

/** The answer, or the code or name of the failure. */
function fetched(url: string, init: RequestInit): Promise<Response | string> {
  const signal = AbortSignal.timeout(probeMs)
  return fetch(url, { ...init, redirect: 'manual', signal }).catch((error) => error.code ?? error.name)
}
