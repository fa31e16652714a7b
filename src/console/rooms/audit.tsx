/** The audit log, and whether its chain holds. */

import { auditEvents } from '../../model/audit-event.ts'
import type { AuditVerification } from '../../model/recorded-call.ts'
import { filterOf, parametersOf } from '../address.ts'
import { session } from '../interface.ts'
import { listed, usePages } from '../pages.ts'
import { Filter } from '../parts/field.tsx'
import { Foreign } from '../parts/foreign.tsx'
import { State, When } from '../parts/parts.tsx'
import { Problem, Room } from '../parts/room.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { useResource } from '../resource.ts'

interface Entry extends Readonly<Record<string, unknown>> {
  readonly seq: number
  readonly time: string
  readonly event: string
}

const columns: readonly Column<Entry>[] = [
  { title: '#', width: 'number', cell: ({ seq }) => seq },
  { title: 'When', width: 'narrow', cell: ({ time }) => <When at={time} /> },
  { title: 'Event', width: 'medium', cell: ({ event }) => <code>{event}</code> },
  {
    title: 'Details',
    cell: ({ seq, time, event, prev, hash, ...fields }) => <Foreign text={JSON.stringify(fields)} code />,
  },
]

export function Audit() {
  const isOperator = session.value?.operator === true
  const event = filterOf('event')
  // Somebody is still typing, or it is a slip.
  const isKnown = event === '' || (auditEvents as readonly string[]).includes(event)
  const path = `/audit?limit=100${parametersOf({ event })}`
  const pages = usePages(isOperator && isKnown ? path : null, listed<Entry>('entries', path))
  const isEmpty = !isKnown || pages.isEmpty
  const verified = useResource<AuditVerification>(isOperator ? '/audit/verification' : null)
  if (!isOperator)
    return (
      <Room name="audit" title="Audit log" isEmpty>
        <p data-reason="The audit log is for operators">
          The audit log is for operators: sign in with an operator’s key to read it.
        </p>
      </Room>
    )
  return (
    <Room
      name="audit"
      title="Audit log"
      {...(isKnown && { resource: pages })}
      request={{ path, command: { words: ['audit', 'list'], options: event === '' ? {} : { event } } }}
      isEmpty={isEmpty}
      filters={<Filter of="event" name="q" label="Event" hint="like key.created" suggestions={auditEvents} />}
    >
      <div data-part="verdict">
        {verified.error !== undefined ? (
          <Problem error={verified.error} again={verified.again} />
        ) : verified.data === undefined ? (
          <span class="muted">checking its chain…</span>
        ) : (
          <State
            level={verified.data.ok ? 'ok' : 'down'}
            text={verified.data.ok ? 'the chain holds' : verified.data.problems.join('; ')}
          />
        )}
      </div>
      {isEmpty ? (
        <p>{isKnown ? 'No entry fits.' : 'No event has this name.'}</p>
      ) : (
        <Table label="Audit log" columns={columns} pages={pages} hooks={({ seq }) => ({ 'data-id': String(seq) })} />
      )}
    </Room>
  )
}
