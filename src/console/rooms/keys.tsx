/** API keys of the user, clients that the user allowed, and for operators the keys that sign tokens. */

import type { ApiKeyList, GrantPage } from '../../model/organization.ts'
import type { SigningKeyList } from '../../model/token.ts'
import { pathOf } from '../address.ts'
import { ask, session } from '../interface.ts'
import { ApiKeys } from '../parts/api-keys.tsx'
import { DangerousAction } from '../parts/dialog.tsx'
import { Foreign } from '../parts/foreign.tsx'
import { Action, When, Wrong } from '../parts/parts.tsx'
import { AsText } from '../parts/request.tsx'
import { Room } from '../parts/room.tsx'
import { useAction, useResource } from '../resource.ts'

const path = '/me/api-keys'

export function Keys() {
  const keys = useResource<ApiKeyList>(path)
  return (
    <Room name="keys" title="API keys" request={{ path, command: { words: ['keys', 'list'] } }} resource={keys}>
      <ApiKeys path={path} keys={keys} />
      <Grants />
      {session.value?.operator === true && <SigningKeys />}
    </Room>
  )
}

/** Clients that the user allowed by a sign-in. */
function Grants() {
  const grants = useResource<GrantPage>('/me/grants')
  const { data } = grants
  return (
    <section>
      <h2>Clients that you allowed</h2>
      <ul class="rows">
        {data?.grants.map((one) => (
          <li key={one.id} data-id={one.id} class="spread">
            <span>
              <Foreign text={one.client} strong /> at{' '}
              {[one.namespace, one.connectionId ?? one.view].filter(Boolean).join('/')},{' '}
              {one.tools === null ? 'all tools' : `${one.tools.length} tools`}, ends <When at={one.expiresAt} />
            </span>
            <DangerousAction
              act="Revoke"
              of={`“${one.client}”`}
              isSmall
              onAct={() => ask('DELETE', pathOf('me', 'grants', one.id))}
              onDone={grants.again}
            >
              <p>Its tokens end at once; it has to sign in again.</p>
            </DangerousAction>
          </li>
        ))}
      </ul>
      {data?.grants.length === 0 && <p class="muted">No client has signed in for you.</p>}
      <Wrong error={grants.error} />
      <AsText request={{ path: '/me/grants', command: { words: ['grants', 'list'] } }} />
    </section>
  )
}

function SigningKeys() {
  const keys = useResource<SigningKeyList>('/signing-keys')
  const rotate = useAction(async () => {
    await ask('POST', '/signing-keys/rotate')
    keys.again()
  })
  return (
    <section>
      <h2>Signing keys</h2>
      <ul class="rows">
        {keys.data?.keys.map(({ kid, state, since, acceptedUntil }) => (
          <li key={kid} data-id={kid}>
            <code>{kid}</code> {state} since <When at={since} />
            {acceptedUntil !== null && (
              <>
                , accepted until <When at={acceptedUntil} />
              </>
            )}
          </li>
        ))}
      </ul>
      <Wrong error={keys.error ?? rotate.error} />
      <Action name="save" does={rotate} label="Rotate" />
      <AsText request={{ path: '/signing-keys', command: { words: ['signing-key', 'list'] } }} />
    </section>
  )
}
