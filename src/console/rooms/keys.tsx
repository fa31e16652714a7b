/** The API keys of the user, and for operators the keys that sign tokens. */

import { useState } from 'preact/hooks'
import type { SigningKeyList } from '../../model/token.ts'
import { ask, session } from '../interface.ts'
import { Confirm } from '../parts/dialog.tsx'
import { Field, Form } from '../parts/field.tsx'
import { Foreign } from '../parts/foreign.tsx'
import { Action, Copied, When } from '../parts/parts.tsx'
import { Room } from '../parts/room.tsx'
import { useAction, useResource } from '../resource.ts'

interface OwnKey {
  readonly id: string
  readonly name: string
  readonly createdAt: string
}

export function Keys() {
  const keys = useResource<{ apiKeys: OwnKey[] }>('/me/api-keys')
  const [name, setName] = useState('')
  const create = useAction(async () => {
    const made = await ask<{ key: string }>('POST', '/me/api-keys', { body: { name } })
    keys.again()
    return made.key
  })
  const revoke = useAction(async (id: string) => {
    await ask('DELETE', `/me/api-keys/${encodeURIComponent(id)}`)
    keys.again()
  })
  const [asked, setAsked] = useState<OwnKey | undefined>()
  const all = keys.data?.apiKeys ?? []
  return (
    <Room
      name="keys"
      title="API keys"
      request={{ path: '/me/api-keys', command: ['keys', 'list'] }}
      resource={keys}
      isEmpty={keys.data !== undefined && all.length === 0}
    >
      <ul class="rows" data-part="rows" data-end="true">
        {all.map((one) => (
          <li key={one.id} data-id={one.id}>
            <b>
              <Foreign text={one.name === '' ? 'without a name' : one.name} />
            </b>{' '}
            <code class="muted">{one.id}</code> created <When at={one.createdAt} />{' '}
            {one.id === session.value?.key.id && <small>this session’s key</small>}{' '}
            <Action name="revoke" onClick={() => setAsked(one)}>
              Revoke
            </Action>
          </li>
        ))}
      </ul>
      {asked !== undefined && (
        <Confirm
          act={`Revoke ${asked.name}`}
          name="revoke"
          isBusy={revoke.isBusy}
          error={revoke.error}
          onAct={() => void revoke.run(asked.id).then(() => setAsked(undefined))}
          onClose={() => setAsked(undefined)}
        >
          <p>
            Every token that was minted with <b>{asked.name}</b> ({asked.id}) ends at once
            {asked.id === session.value?.key.id && ', and so does this session'}.
          </p>
        </Confirm>
      )}
      <Form title="New API key" onSend={() => void create.run()}>
        <Field name="name" label="Name" value={name} onInput={setName} isRequired error={create.error?.message} />
        <Action name="create" type="submit" isMain isBusy={create.isBusy}>
          Create
        </Action>
        {create.done !== undefined && (
          <p data-part="minted" role="status">
            Copy it now; it is never shown again: <Copied text={create.done} />
          </p>
        )}
      </Form>
      {session.value?.operator === true && <SigningKeys />}
    </Room>
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
      {(keys.error ?? rotate.error) !== undefined && <p class="wrong">{(keys.error ?? rotate.error)?.message}</p>}
      <Action name="save" isBusy={rotate.isBusy} onClick={() => void rotate.run()}>
        Rotate
      </Action>
    </section>
  )
}
