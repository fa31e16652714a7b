/** The sign-in room, at whatever address somebody came to. */

import { useEffect, useState } from 'preact/hooks'
import type { ConsoleSessionBody } from '../../model/console.ts'
import { ask, base, lastUser, session, tellTabs } from '../interface.ts'
import { Brand } from '../parts/brand.tsx'
import { Field, Form } from '../parts/field.tsx'
import { Action } from '../parts/parts.tsx'
import { Room } from '../parts/room.tsx'
import { useAction } from '../resource.ts'

export function SignIn() {
  const [key, setKey] = useState('')
  const signIn = useAction(async () => {
    setKey('')
    session.value = await ask<ConsoleSessionBody>('POST', '/console/session', { body: { key } })
    tellTabs()
  })
  useEffect(() => document.querySelector<HTMLElement>('[data-field="key"]')?.focus(), [])
  return (
    <div class="frame alone">
      <Room name="sign-in" title="Sign in to postern">
        {lastUser.value !== undefined && (
          <p role="status">Your session has ended. Refused calls were not made; your text is kept.</p>
        )}
        <p class="muted">
          <span class="brand">
            <Brand />
          </span>{' '}
          at {location.host}
        </p>
        <Form onSend={() => void signIn.run()}>
          <Field
            name="key"
            label="API key"
            type="password"
            value={key}
            onInput={setKey}
            error={signIn.error?.message}
          />
          <Action name="sign-in" type="submit" isMain isBusy={signIn.isBusy} label="Sign in" />
        </Form>
        <p class="muted">
          No API key? Somebody who runs this server makes one with <code>postern keys create</code>, or a link that
          signs you in with <code>postern signin-link</code>. <a href={`${base}/docs/console`}>More about it</a>
        </p>
      </Room>
    </div>
  )
}
