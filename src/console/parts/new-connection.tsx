/** A connection that somebody makes: its id, and the write that never changes one that is there. */

import type { Connection } from '../../model/connection.ts'
import { go, hrefOf, pathOf } from '../address.ts'
import { ask, Refused } from '../interface.ts'
import { Field } from './field.tsx'

const idHint = 'letters, digits, ".", "_" or "-"'

interface ConnectionIdProps {
  readonly value: string
  readonly onInput: (id: string) => void
  /** Of the write. */
  readonly error: Error | undefined
}

export function ConnectionId({ value, onInput, error }: ConnectionIdProps) {
  const isGood = /^[\w-][\w.-]*$/.test(value) && value !== 'mcp'
  return (
    <Field
      {...{ value, onInput, hint: idHint }}
      name="id"
      label="Id of the connection"
      isRequired
      wrong={isGood ? undefined : `must be ${idHint}`}
      error={error instanceof Taken ? error.message : undefined}
    />
  )
}

/** Where a connection leads, in words. */
export function serverOf({ mcpUrl, transport, mock }: Pick<Connection, 'mcpUrl' | 'transport' | 'mock'>): string {
  if (transport === 'uplink') return 'an uplink, whose server dials in'
  return mcpUrl ?? (mock?.enabled === true ? 'mocked' : 'none')
}

/** A connection has the id already. */
export class Taken extends Error {}

/** Makes it, and leads to its room. Throws Taken where one is there already. */
export async function createConnection(namespace: string, id: string, body: object): Promise<void> {
  const path = pathOf('connect', namespace, id)
  if (await isTaken(path)) throw new Taken(`${id} is there already: choose another id`)
  await ask('PUT', path, { body })
  go(hrefOf('connections', namespace, id))
}

/** Whether something is at this path already: a PUT would change it. */
async function isTaken(path: string): Promise<boolean> {
  try {
    await ask('GET', path)
    return true
  } catch (error) {
    if (error instanceof Refused && error.status === 404) return false
    throw error
  }
}
