/** A list of API keys: each can be revoked, and a new one is shown once. */

import type { ApiKeyList } from '../../model/organization.ts'
import { pathOf } from '../address.ts'
import { ask, session } from '../interface.ts'
import { type Resource, useAction } from '../resource.ts'
import { DangerousAction } from './dialog.tsx'
import { Field, Form, useDraft } from './field.tsx'
import { Foreign } from './foreign.tsx'
import { Action, Copied, When, Wrong } from './parts.tsx'
import { SomeRows } from './some-rows.tsx'

/** `path`: of the list, whose keys are below it. */
export function ApiKeys({ path, keys }: { readonly path: string; readonly keys: Resource<ApiKeyList> }) {
  const [name, setName] = useDraft(`${path} name`)
  const create = useAction(async () => {
    const made = await ask<{ key: string }>('POST', path, { body: { name } })
    setName('')
    keys.again()
    return made.key
  })
  const own = session.value?.key.id
  const named = (one: string) => (one === '' ? 'without a name' : one)
  return (
    <>
      <SomeRows
        part="rows"
        items={keys.data?.apiKeys ?? []}
        row={(one) => (
          <li key={one.id} data-id={one.id} class="spread">
            <span>
              <Foreign text={named(one.name)} strong /> <code class="muted">{one.id}</code> created{' '}
              <When at={one.createdAt} /> {one.id === own && <small>this session’s key</small>}
            </span>
            <DangerousAction
              act="Revoke"
              of={`“${named(one.name)}”`}
              isSmall
              onAct={() => ask('DELETE', path + pathOf(one.id))}
              onDone={keys.again}
            >
              <p>
                Every token that was minted with {one.id} ends at once{one.id === own && ', and so does this session'}.
              </p>
            </DangerousAction>
          </li>
        )}
      />
      <Wrong error={keys.error} />
      <Form title="New API key" onSend={() => void create.run()}>
        <Field name="name" label="Name" value={name} onInput={setName} isRequired error={create.error?.message} />
        <Action name="create" type="submit" isMain isBusy={create.isBusy} label="Create" />
        {create.done !== undefined && (
          <p data-part="minted" role="status">
            Copy it now; it is never shown again: <Copied text={create.done} />
          </p>
        )}
      </Form>
    </>
  )
}
