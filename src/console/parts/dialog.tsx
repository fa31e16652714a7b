/** A question before what cannot be undone. It has the focus until it is answered, and gives it back. */

import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { Action } from './parts.tsx'

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

interface ConfirmProps {
  /** What happens, as the button says it: `Delete crm`. */
  readonly act: string
  readonly name: string
  readonly children: ComponentChildren
  readonly isBusy: boolean
  readonly error: Error | undefined
  readonly onAct: () => void
  readonly onClose: () => void
}

export function Confirm({ act, name, children, isBusy, error, onAct, onClose }: ConfirmProps) {
  const dialog = useModal()
  return (
    <dialog ref={dialog} aria-label={act} onCancel={onClose} onClose={onClose}>
      <h2>{act}?</h2>
      {children}
      {error !== undefined && <p class="wrong">{error.message}</p>}
      <p>
        <Action name={name} isMain isBusy={isBusy} onClick={onAct}>
          {act}
        </Action>{' '}
        <Action name="pause" onClick={onClose}>
          Keep it
        </Action>
      </p>
    </dialog>
  )
}
