/** Namespaces, and one of them. */

import { useState } from 'preact/hooks'
import { address, filter, go, hrefOf } from '../address.ts'
import { ask } from '../interface.ts'
import { useMe } from '../parts/me.tsx'
import { Action, Field, Room } from '../parts/parts.tsx'
import { useAction, useResource } from '../resource.ts'

interface Page {
  readonly namespaces: readonly { readonly name: string }[]
  readonly pagination: { readonly currentPage: number; readonly totalPages: number; readonly totalCount: number }
}

export function Namespaces() {
  const me = useMe()
  const { query } = address.value
  const q = query.get('q') ?? ''
  const page = query.get('page') ?? '1'
  const list = useResource<Page>(`/namespaces?page=${page}${q === '' ? '' : `&q=${encodeURIComponent(q)}`}`)
  const [name, setName] = useState('')
  const create = useAction(async () => {
    await ask('PUT', `/namespaces/${encodeURIComponent(name)}`)
    go(hrefOf('namespaces', name))
  })
  const { namespaces = [], pagination } = list.data ?? {}
  const isEnd = pagination === undefined || pagination.currentPage >= pagination.totalPages
  return (
    <Room
      name="namespaces"
      title="Namespaces"
      resource={list}
      isEmpty={list.data !== undefined && namespaces.length === 0}
    >
      <div class="filters">
        <Field name="q" label="Begins with" value={q} onInput={(value) => filter({ q: value, page: '' })} />
      </div>
      {namespaces.length === 0 && (
        <p>There are no namespaces here yet. Connections are made in one: begin with it below.</p>
      )}
      <ul class="rows" data-part="rows" data-end={isEnd}>
        {namespaces.map((one) => (
          <li key={one.name} data-id={one.name}>
            <a href={hrefOf('namespaces', one.name)}>{one.name}</a>
          </li>
        ))}
      </ul>
      {!isEnd && (
        <Action name="more" onClick={() => filter({ page: String(Number(page) + 1) })}>
          Next page
        </Action>
      )}
      {(me.data?.organizations.length ?? 0) > 0 && (
        <section>
          <h2>Your organizations</h2>
          <ul class="rows">
            {me.data?.organizations.map(({ organizationId, role }) => (
              <li key={organizationId}>
                <a href={hrefOf('organizations', organizationId)}>{organizationId}</a> <span class="muted">{role}</span>
              </li>
            ))}
          </ul>
        </section>
      )}
      <form
        class="panel"
        onSubmit={(event) => {
          event.preventDefault()
          void create.run()
        }}
      >
        <h2>New namespace</h2>
        <Field name="name" label="Name" value={name} onInput={setName} isRequired error={create.error?.message} />
        <Action name="create" type="submit" isMain isBusy={create.isBusy}>
          Make it
        </Action>
      </form>
    </Room>
  )
}

export function Namespace() {
  const [, name = ''] = address.value.path
  const path = `/namespaces/${encodeURIComponent(name)}`
  const namespace = useResource<Record<string, unknown>>(path)
  const me = useMe()
  const [typed, setTyped] = useState('')
  const remove = useAction(async () => {
    await ask('DELETE', path)
    go(hrefOf('namespaces'))
  })
  const leads = me.data?.namespaces.find((one) => one.name === name)?.leads === true
  const reason = !leads
    ? 'Only its user, or an owner or admin of its organization, may delete it'
    : typed !== name
      ? 'Type its name to delete it'
      : undefined
  return (
    <Room name="namespace" title={name} id={name} resource={namespace}>
      <p>
        <a href={`${hrefOf('connections')}?namespace=${encodeURIComponent(name)}`}>Its connections</a>
      </p>
      <dl>
        {Object.entries(namespace.data ?? {}).map(([key, value]) => (
          <>
            <dt>{key}</dt>
            <dd>
              <code>{JSON.stringify(value)}</code>
            </dd>
          </>
        ))}
      </dl>
      <form
        class="panel"
        onSubmit={(event) => {
          event.preventDefault()
          if (reason === undefined) void remove.run()
        }}
      >
        <h2>Delete it</h2>
        <p>Its connections, views and servers are deleted with it, and their clients lose their tools.</p>
        <Field name="confirm" label={`Type ${name}`} value={typed} onInput={setTyped} error={remove.error?.message} />
        <Action name="delete" type="submit" isBusy={remove.isBusy} reason={reason}>
          Delete {name}
        </Action>
      </form>
    </Room>
  )
}
