/** `postern namespace`: the namespaces of the caller. */

import { allPages, type CommandContext, openClient, pathSegment } from './api-client.ts'
import { confirmDeletion } from './confirm-deletion.ts'
import { noNamespace } from './missing.ts'
import { printSentence, printTable } from './output.ts'

/** `organization`: the owner; the caller, if it is left out. */
export async function addNamespace(
  name: string,
  organizationId: string | undefined,
  { flags, environment, terminal }: CommandContext,
): Promise<void> {
  const body = organizationId === undefined ? undefined : { organizationId }
  const made = await openClient(flags, environment).request('PUT', `/namespaces/${pathSegment(name)}`, { body })
  printSentence(made, flags, `you manage the namespace ${name}`, terminal)
}

export async function listNamespaces({ flags, environment, terminal }: CommandContext): Promise<void> {
  const found = await allPages<'namespaces', { name: string }>(
    openClient(flags, environment),
    '/namespaces',
    'namespaces',
    50,
  )
  const rows = found.namespaces.map(({ name }) => [name])
  printTable(found, flags, { heading: ['NAMESPACE'], rows }, terminal)
}

export async function removeNamespace(name: string, context: CommandContext): Promise<void> {
  const { flags, environment, terminal } = context
  const client = openClient(flags, environment)
  await confirmDeletion(`Delete the namespace ${name} with all its connections?`, context)
  const removed = await client.request('DELETE', `/namespaces/${pathSegment(name)}`, noNamespace(name))
  printSentence(removed, flags, `the namespace ${name} is deleted`, terminal)
}
