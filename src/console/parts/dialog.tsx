/** A question before what cannot be undone. It has the focus until it is answered, and gives it back. */

import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import { useAction } from '../resource.ts'
import { Field } from './field.tsx'
import { Foreign, visible } from './foreign.tsx'
import { Action, Wrong } from './parts.tsx'

/** Opens a dialog over everything else while it is there, and gives the focus back when it is gone. */
export function useModal() {
  const dialog = useRef<HTMLDialogElement>(null)
  useLayoutEffect(() => {
    const [element, before] = [dialog.current, document.activeElement]
    element?.showModal()
    return () => {
      // Until it is closed, nothing else can have the focus.
      element?.close()
      if (before instanceof HTMLElement) before.focus()
    }
  }, [])
  return dialog
}

interface DangerousProps {
  readonly act: 'Delete' | 'Remove' | 'Revoke'
  /** The name of the thing to delete, remove or revoke; a stranger may have chosen it. */
  readonly of: string
  readonly isSmall?: boolean
  readonly reason?: string | undefined
  /** The name that somebody has to type first, where much is lost. */
  readonly typed?: string
  readonly onAct: () => Promise<unknown>
  readonly onDone: () => void
  /** Says what is lost by it. */
  readonly children: ComponentChildren
}

/** A button of something dangerous, which a dialog asks about. */
export function DangerousAction({ isSmall = false, reason, ...asked }: DangerousProps) {
  const { act } = asked
  const [isAsking, setAsking] = useState(false)
  return (
    <>
      <Action {...{ isSmall, reason }} name={act.toLowerCase()} onClick={() => setAsking(true)} label={act} />
      {isAsking && <Confirm {...asked} onClose={() => setAsking(false)} />}
    </>
  )
}

type ConfirmProps = Omit<DangerousProps, 'isSmall' | 'reason'> & { readonly onClose: () => void }

function Confirm({ act, of, typed, onAct, onDone, onClose, children }: ConfirmProps) {
  const deed = visible(`${act} ${of}`)
  const dialog = useModal()
  const [text, setText] = useState('')
  const reason = typed === undefined || text === typed ? undefined : `Type ${typed} first`
  const doing = useAction(async () => {
    await onAct()
    onDone()
    onClose()
    // The button that asked is gone, or will be.
    setTimeout(() => document.querySelector('h1')?.focus({ preventScroll: true }))
  })
  return (
    <dialog ref={dialog} aria-label={deed} onCancel={onClose} onClose={onClose}>
      <h2>
        {act} <Foreign text={of} />?
      </h2>
      {children}
      {typed !== undefined && <Field name="confirm" label={`Type ${typed}`} value={text} onInput={setText} />}
      <Wrong error={doing.error} />
      <p>
        <Action name={act.toLowerCase()} isMain reason={reason} does={doing}>
          {act} <Foreign text={of} />
        </Action>{' '}
        <Action name="pause" onClick={onClose} label="Keep it" />
      </p>
    </dialog>
  )
}
