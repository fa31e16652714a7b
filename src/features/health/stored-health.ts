/** The health of stored connections, with the changes of their pins. */

import { accessTo, namespaceOf, type RequestContext } from '../../auth/authorizer.ts'
import { manyConnections } from '../../auth/stored-connections.ts'
import type { ConnectionRef } from '../../model/connection.ts'
import type { Health } from '../../model/health.ts'
import { decideOnConnection } from '../../policy/decide.ts'
import type { StoredConnection } from '../../storage/connections.ts'
import type { WriterDeps } from '../connections/writer.ts'
import { noPins } from '../pins/pin-record.ts'
import { isUsable, type Pins } from '../pins/pins.ts'
import type { RecordsDeps } from '../records/readable-calls.ts'
import { healthOf } from './health.ts'

export interface HealthDeps extends WriterDeps, RecordsDeps {
  readonly pins: Pick<Pins, 'settingOf' | 'of'>
  /** Whether the server calls mocks of the sample itself. */
  readonly hasSampleTraffic: boolean
}

/** Whether somebody has to do something. */
export const needsSomebody = ({ level }: Health) => level === 'attention' || level === 'down'

/** Of those that the caller may read, in one namespace. `before`: without those made later; milliseconds since 1970. */
export async function healthOfAll(
  deps: HealthDeps,
  context: RequestContext,
  refs: readonly ConnectionRef[],
  before = Number.POSITIVE_INFINITY,
): Promise<Health[]> {
  if ((await namespaceOf(context, refs[0]?.namespace)) === undefined) return []
  const stored = await manyConnections(deps.store, context.request, refs)
  const found: Health[] = []
  for (const [index, ref] of refs.entries()) {
    const one = stored[index]
    if (one === undefined || Date.parse(one.connection.createdAt) > before) continue
    const { allowed } = decideOnConnection(context.caller.blocks, accessTo(ref, one, 'read'))
    if (allowed) found.push(await healthNow(deps, context, ref, one))
  }
  return found
}

export async function healthNow(
  { pins, clock, links }: Pick<HealthDeps, 'pins' | 'clock' | 'links'>,
  context: RequestContext,
  ref: ConnectionRef,
  stored: StoredConnection,
): Promise<Health> {
  const connection = { ...ref, stored }
  const arePinned = stored.privatePart.pins !== undefined && (await pins.settingOf(context, connection)) !== 'off'
  const { tools, instructions } = arePinned ? await pins.of(context, connection) : noPins
  const all = [...(tools?.values() ?? []), ...(instructions === undefined ? [] : [instructions])]
  const hasChanged = all.some((pin) => !isUsable(pin))
  return healthOf(ref, stored, { hasChanged, now: clock.now(), setupUrl: links.urlOf(ref) })
}
