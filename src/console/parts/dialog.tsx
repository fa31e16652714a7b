/** A question before what cannot be undone. It has the focus until it is answered, and gives it back. */

import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import { useAction } from '../resource.ts'
import { visible } from './foreign.tsx'
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
  readonly name: string
  /** Of the button that asks. */
  readonly label: string
  /** The deed, as the dialog and its button say it: `Delete crm`. Names of strangers may be in it. */
  readonly act: string
  readonly isSmall?: boolean
  readonly reason?: string | undefined
  readonly onAct: () => Promise<void>
  /** Says what is lost by it. */
  readonly children: ComponentChildren
}

/** A button of something dangerous, which a dialog asks about. */
export function DangerousAction({ name, label, act, isSmall = false, reason, onAct, children }: DangerousProps) {
  const [isAsking, setAsking] = useState(false)
  return (
    <>
      <Action {...{ name, isSmall, reason }} onClick={() => setAsking(true)}>
        {label}
      </Action>
      {isAsking && (
        <Confirm {...{ name, act, onAct }} onClose={() => setAsking(false)}>
          {children}
        </Confirm>
      )}
    </>
  )
}

type ConfirmProps = Pick<DangerousProps, 'name' | 'act' | 'onAct' | 'children'> & { readonly onClose: () => void }

function Confirm({ name, act, onAct, onClose, children }: ConfirmProps) {
  const deed = visible(act)
  const dialog = useModal()
  const doing = useAction(async () => {
    await onAct()
    onClose()
  })
  return (
    <dialog ref={dialog} aria-label={deed} onCancel={onClose} onClose={onClose}>
      <h2>{deed}?</h2>
      {children}
      <Wrong error={doing.error} />
      <p>
        <Action name={name} isMain does={doing}>
          {deed}
        </Action>{' '}
        <Action name="pause" onClick={onClose} label="Keep it" />
      </p>
    </dialog>
  )
}
