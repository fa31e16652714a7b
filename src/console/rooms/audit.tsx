/** The audit log, and whether its chain holds. */

import type { AuditVerification } from '../../model/recorded-call.ts'
import { address, filter } from '../address.ts'
import { session } from '../interface.ts'
import { Foreign } from '../parts/foreign.tsx'
import { Action, Field, Room, State, When } from '../parts/parts.tsx'
import { usePages, useResource } from '../resource.ts'

interface Entry extends Readonly<Record<string, unknown>> {
  readonly seq: number
  readonly time: string
  readonly event: string
}

export function Audit() {
  const isOperator = session.value?.operator === true
  const { query } = address.value
  const event = query.get('event') ?? ''
  const path = isOperator ? `/audit?limit=50${event === '' ? '' : `&event=${encodeURIComponent(event)}`}` : null
  const list = usePages<{ entries: Entry[]; nextCursor: string | null }, Entry>(path, ({ entries }) => entries)
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
      resource={{ ...list, isLoading: list.isLoading && list.items.length === 0 }}
      isEmpty={!list.isLoading && list.items.length === 0}
    >
      <p data-part="verdict">
        {verified.data === undefined ? (
          <span class="muted">checking its chain…</span>
        ) : (
          <State level={verified.data.ok ? 'ok' : 'down'}>
            {verified.data.ok ? 'the chain holds' : <Foreign text={verified.data.problems.join('; ')} />}
          </State>
        )}
      </p>
      <div class="filters">
        <Field
          name="q"
          label="Event"
          value={event}
          onInput={(value) => filter({ event: value })}
          hint="like key.created"
        />
      </div>
      <table>
        <thead>
          <tr>
            <th class="number">#</th>
            <th>When</th>
            <th>Event</th>
            <th>What it says</th>
          </tr>
        </thead>
        <tbody data-part="rows" data-end={!list.hasMore}>
          {list.items.map(({ seq, time, event: name, prev, hash, ...fields }) => (
            <tr key={`${String(hash)}${seq}`} data-id={String(seq)}>
              <td class="number">{seq}</td>
              <td>
                <When at={time} />
              </td>
              <td>
                <code>{name}</code>
              </td>
              <td class="muted">
                <Foreign text={JSON.stringify(fields)} code />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {list.hasMore && (
        <Action name="more" onClick={list.more}>
          Earlier entries
        </Action>
      )}
    </Room>
  )
}
