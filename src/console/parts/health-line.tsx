/** The health of a connection in a line, with the one thing that would help it. */

import { useState } from 'preact/hooks'
import type { Health, HealthAction } from '../../model/health.ts'
import { hrefOf } from '../address.ts'
import { ask } from '../interface.ts'
import { useAction } from '../resource.ts'
import { Action, Elsewhere, State, When, Wrong } from './parts.tsx'

interface HealthProps {
  readonly health: Health
  readonly namespace: string
  /** Hears the new health of a connection that somebody tested here. */
  readonly onChange?: (health: Health) => void
}

export function HealthLine({ health: given, namespace, onChange }: HealthProps) {
  // The health that a test here has found, until the room hears of another.
  const [tested, setTested] = useState<{ readonly of: Health; readonly found: Health } | undefined>()
  const health = tested?.of === given ? tested.found : given
  const change = (found: Health) => {
    setTested({ of: given, found })
    onChange?.(found)
  }
  return (
    <div class="health">
      <span>
        <State level={health.level} text={health.summary} />
        {health.since !== null && (
          <small class="muted">
            {' '}
            since <When at={health.since} />
          </small>
        )}
      </span>
      {health.action !== null && (
        <span>
          <Resolve {...{ namespace, health }} action={health.action} onChange={change} />
        </span>
      )}
    </div>
  )
}

type ResolveProps = Required<HealthProps> & { readonly action: HealthAction }

function Resolve({ namespace, health, action, onChange }: ResolveProps) {
  const test = useAction(async (path: string) => onChange(await ask<Health>('POST', path)))
  if ('href' in action) return <Elsewhere href={action.href}>{action.label}</Elsewhere>
  if (action.kind === 'review-pins')
    return (
      <a href={`${hrefOf('connections', namespace, health.connectionId)}#pins`} data-action="resolve">
        {action.label}
      </a>
    )
  // The server of an uplink dials in by itself: a browser cannot do it.
  if (action.kind !== 'test') return <small class="muted">{action.label}</small>
  return (
    <>
      <Action name="resolve" isSmall isBusy={test.isBusy} onClick={() => void test.run(action.path)}>
        {action.label}
      </Action>
      <Wrong error={test.error} />
    </>
  )
}
