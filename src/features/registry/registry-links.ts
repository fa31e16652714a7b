/**
 * Links to the registry of a namespace, for editors that cannot send a credential (contract, 20.13). A link is the
 * registry's URL with a secret in it; the store has a keyed hash of the secret.
 */

import { createHmac, randomBytes } from 'node:crypto'
import { auditedCaller } from '../../auth/authenticate.ts'
import { managedBy } from '../../auth/authorizer.ts'
import type { SharedParts } from '../../auth/shared-parts.ts'
import { timestampOf } from '../../clock.ts'
import { notFound, PlatformError } from '../../errors.ts'
import { readOptionalBody } from '../../http/body.ts'
import { handlersOf } from '../../http/handler.ts'
import { lastNameInPath, namesInPath } from '../../http/path.ts'
import { refuseQuery } from '../../http/query.ts'
import { doneResponse, privateJson, wholeResponse } from '../../http/respond.ts'
import { createdAtOf, type Namespace } from '../../model/organization.ts'
import {
  type RegistryLink,
  type RegistryLinkList,
  type RegistryLinkMade,
  RegistryLinkWrite,
} from '../../model/registry.ts'
import { validatorOf } from '../../schema/check.ts'
import { textOf } from '../../storage/bytes.ts'
import { keyOf, prefixOf, prefixRange } from '../../storage/keys.ts'

/** Ours: links to one registry. Past it: 403. */
export const registryLinksMax = 100
/** Random bytes of a link (contract, 20.13). */
const secretBytes = 16

const writeShape = validatorOf(RegistryLinkWrite)
const toRead = { resource: 'namespaces', operation: 'read' } as const

export const registryLinkHandlers = handlersOf({ createRegistryLink, listRegistryLinks, deleteRegistryLink })

async function createRegistryLink(deps: SharedParts, request: Request): Promise<Response> {
  const { audit, writes, clock, base } = deps
  const { caller, change } = await writes.begin(request, managedBy(deps)) // 401, 429, 404, 403, 400
  const { name = 'link' } = await readOptionalBody(request, writeShape) // 400
  const secret = randomBytes(secretBytes).toString('base64url')
  const link = await change(async (_, of) => {
    const { namespace } = of
    const { entries } = await linksOf(deps, namespace)
    // Fixtures may have made another namespace of this name: the links of the former one lead nowhere.
    const former = entries.filter(({ value }) => !isLinkOf(readLink(value), of))
    if (entries.length - former.length >= registryLinksMax)
      throw new PlatformError(
        'forbidden',
        `The registry of ${namespace} has ${registryLinksMax} links: remove one with \`postern registry unlink\``,
      )
    const id = randomBytes(8).toString('hex')
    const createdAt = timestampOf(clock)
    const made = { namespace, id, name, createdAt, namespaceSince: createdAtOf(of) }
    const key = keyOf('registryLink', namespace, digestOf(deps, namespace, secret))
    const puts = [{ key, value: Buffer.from(JSON.stringify(made)) }]
    return { write: { puts, deletes: former.map(({ key }) => key) }, result: made }
  }) // 403, 429
  const { namespace, id, createdAt } = link
  await audit.recordDone('registry-link.created', { ...auditedCaller(caller), namespace, link: id })
  const made: RegistryLinkMade = { id, name, createdAt, url: `${base}/registry/${namespace}~${secret}` }
  return new Response(JSON.stringify(made), { status: 201, headers: privateJson })
}

async function listRegistryLinks(deps: SharedParts, request: Request): Promise<Response> {
  const { authorizer } = deps
  const context = await authorizer.authenticate(request) // 401, 429
  const namespace = await authorizer.requireManager(context, namesInPath(request.url)[0], toRead) // 404, 403
  refuseQuery(request.url) // 400
  const { entries } = await linksOf(deps, namespace.namespace)
  const links = entries.map(({ value }) => readLink(value)).filter((link) => isLinkOf(link, namespace))
  const list: RegistryLinkList = { links: links.map(({ id, name, createdAt }) => ({ id, name, createdAt })) }
  return wholeResponse(request, JSON.stringify(list))
}

async function deleteRegistryLink(deps: SharedParts, request: Request): Promise<Response> {
  const { audit, writes } = deps
  const { caller, change } = await writes.begin(request, managedBy(deps), 'removal') // 401, 429, 404, 403, 400
  const id = lastNameInPath(request.url)
  const namespace = await change(async (_, of) => {
    const { entries } = await linksOf(deps, of.namespace)
    const found = entries.find(({ value }) => readLink(value).id === id)
    if (found === undefined) throw notFound('Link not found') // 404
    return { write: { checks: [found], deletes: [found.key], fromReserve: 'revocation' }, result: of.namespace }
  })
  await audit.recordDone('registry-link.deleted', { ...auditedCaller(caller), namespace, link: id })
  return doneResponse()
}

/** Whether a secret is that of a link to this namespace’s registry. */
export async function isLinkSecret(deps: SharedParts, of: Namespace, secret: string): Promise<boolean> {
  const { namespace } = of
  const stored = await deps.store.get(keyOf('registryLink', namespace, digestOf(deps, namespace, secret)))
  return stored !== undefined && isLinkOf(readLink(stored), of)
}

function isLinkOf({ namespaceSince }: RegistryLink, namespace: Namespace): boolean {
  return namespaceSince === createdAtOf(namespace)
}

function linksOf({ store }: SharedParts, namespace: string) {
  return store.range({ ...prefixRange(prefixOf('registryLink', namespace)), limit: registryLinksMax })
}

const readLink = (value: Uint8Array) => JSON.parse(textOf(value)) as RegistryLink

function digestOf({ signInKey }: SharedParts, namespace: string, secret: string): string {
  return createHmac('sha256', signInKey).update(`registry link\0${namespace}\0${secret}`).digest('base64url')
}
