/** The caller, whose rights say which buttons work. */

import type { Me } from '../../model/organization.ts'
import { useResource } from '../resource.ts'
import { Field } from './field.tsx'

export const useMe = () => useResource<Me>('/me')

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
