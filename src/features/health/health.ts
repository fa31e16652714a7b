/** How well a connection is, as far as is known without contacting its server (contract, 22.1). */

import type { ConnectionRef } from '../../model/connection.ts'
import type { Health, HealthAction } from '../../model/health.ts'
import type { StoredConnection } from '../../storage/connections.ts'

/** Contract 22.1: milliseconds after the last contact in which a connection counts as healthy (`ok`). Past it: `unknown`. */
const wellMs = 24 * 3600 * 1000

/**
 * `hasChanged`: whether its server lists something else than was accepted. `setupUrl`: of a connection whose status has
 * none, as one of a fixture may. `now` in milliseconds since 1970.
 */
export function healthOf(
  { namespace, connectionId }: ConnectionRef,
  { connection: { status, mock, transport }, privatePart: { contactedAt, statusSince } }: StoredConnection,
  { hasChanged, now, setupUrl }: { readonly hasChanged: boolean; readonly now: number; readonly setupUrl: string },
): Health {
  const path = `/connect/${namespace}/${connectionId}`
  const is = (level: Health['level'], summary: string, action: HealthAction | null, since = statusSince): Health => {
    return { connectionId, level, summary, since: since === undefined ? null : new Date(since).toISOString(), action }
  }
  const test: HealthAction = { kind: 'test', label: 'Test it', method: 'POST', path: `${path}/.test` }
  if (status.state === 'auth_required')
    return is('attention', 'Needs sign-in', { kind: 'sign-in', label: 'Sign in', href: status.setupUrl ?? setupUrl })
  if (status.state === 'input_required')
    return is('attention', 'Needs values', { kind: 'input', label: 'Enter values', href: status.setupUrl ?? setupUrl })
  if (status.state === 'error') return is('down', status.message, test)
  if (status.state === 'disconnected')
    return transport === 'uplink'
      ? is('down', 'Nothing has dialled in', { kind: 'dial', label: 'Dial in', method: 'POST', path })
      : is('down', 'Could not be reached', test)
  if (hasChanged) {
    const review: HealthAction = { kind: 'review-pins', label: 'Review changes', method: 'GET', path: `${path}/.pins` }
    return is('attention', 'Its tools have changed', review)
  }
  if (mock?.enabled === true) return is('ok', 'Mocked', null)
  if (contactedAt === undefined) return is('unknown', 'Not contacted yet', test)
  if (now - contactedAt > wellMs) return is('unknown', 'Not contacted for a day', test, contactedAt)
  return is('ok', 'Connected', null)
}
