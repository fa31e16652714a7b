/** A question before what cannot be undone. It has the focus until it is answered, and gives it back. */

import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { Action } from './parts.tsx'

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
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    const before = document.activeElement
    dialog.current?.showModal()
    return () => {
      if (before instanceof HTMLElement) before.focus()
    }
  }, [])
  return (
    <dialog ref={dialog} aria-label={act} onCancel={onClose} onClose={onClose}>
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
