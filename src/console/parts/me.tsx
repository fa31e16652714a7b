/** The caller, whose rights say which buttons work. */

import type { Me } from '../../model/organization.ts'
import { hrefWith } from '../address.ts'
import { useResource } from '../resource.ts'
import { Field } from './field.tsx'

export const useMe = () => useResource<Me>('/me')

/** Why the caller may not do something in a namespace; undefined: they may. `what`: for the button. */
export function reasonIn(me: Me | undefined, namespace: string | undefined, operation: string, what: string) {
  if (me === undefined) return 'Your rights are not known yet'
  const known = me.namespaces.find(({ name }) => name === namespace)
  // Of more namespaces than the list has, the server decides.
  if (known?.may.includes(operation) === true || (known === undefined && me.more)) return undefined
  return me.namespaces.length === 0 && (namespace ?? '') === ''
    ? 'Make a namespace first'
    : `Your key may not ${what}: ask somebody who manages ${namespace}`
}

export const NewNamespaceLink = () => <a href={hrefWith({ new: 'yes' }, 'namespaces')}>Make a namespace</a>

interface ChoiceProps {
  readonly me: Me | undefined
  readonly value: string
  readonly onChange: (value: string) => void
  /** Whether none is a choice, too. */
  readonly withAny?: boolean
}

export function NamespaceChoice({ me, value, onChange, withAny }: ChoiceProps) {
  const names = me?.namespaces.map(({ name }) => name) ?? []
  const options = [...(withAny === true ? [''] : []), ...new Set([...names, ...(value === '' ? [] : [value])])]
  return <Field name="namespace" label="Namespace" value={value} onInput={onChange} options={options} />
}
