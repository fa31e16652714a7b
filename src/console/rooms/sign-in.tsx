/** The sign-in room, at whatever address somebody came to. */

import { useState } from 'preact/hooks'
import type { ConsoleSessionBody } from '../../model/console.ts'
import { ask, lastUser, session } from '../interface.ts'
import { Field } from '../parts/field.tsx'
import { Action } from '../parts/parts.tsx'
import { Room } from '../parts/room.tsx'
import { useAction } from '../resource.ts'

export function SignIn() {
  const [key, setKey] = useState('')
  const signIn = useAction(async () => {
    session.value = await ask<ConsoleSessionBody>('POST', '/console/session', { body: { key } })
  })
  return (
    <div class="frame alone">
      <Room name="sign-in" title="Sign in to postern">
        {lastUser.value !== undefined && (
          <p role="status">Your session has ended. What was not answered was not done.</p>
        )}
        <form
          class="panel"
          onSubmit={(event) => {
            event.preventDefault()
            setKey('')
            void signIn.run()
          }}
        >
          <Field
            name="key"
            label="API key"
            type="password"
            value={key}
            onInput={setKey}
            isRequired
            error={signIn.error?.message}
          />
          <Action name="sign-in" type="submit" isMain isBusy={signIn.isBusy}>
            Sign in
          </Action>
        </form>
        <p class="muted">No API key? Ask whoever runs this postern for one, or for a sign-in link.</p>
      </Room>
    </div>
  )
}
