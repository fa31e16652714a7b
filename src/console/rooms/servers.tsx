/** Registered servers, and one of them, from which a connection is made. */

import { useState } from 'preact/hooks'
import type { Connection } from '../../model/connection.ts'
import { address, filter, go, hrefOf } from '../address.ts'
import { ask } from '../interface.ts'
import { Foreign } from '../parts/foreign.tsx'
import { NamespaceChoice, useMe } from '../parts/me.tsx'
import { Action, Field, Room } from '../parts/parts.tsx'
import { useAction, useResource } from '../resource.ts'

interface Listed {
  readonly qualifiedName: string
  readonly displayName: string
  readonly description?: string
}
interface Page {
  readonly servers: readonly Listed[]
  readonly pagination: { readonly currentPage: number; readonly totalPages: number; readonly totalCount: number }
}

export function Servers() {
  const { query } = address.value
  const q = query.get('q') ?? ''
  const page = query.get('page') ?? '1'
  const list = useResource<Page>(`/servers?pageSize=50&page=${page}${q === '' ? '' : `&q=${encodeURIComponent(q)}`}`)
  const { servers = [], pagination } = list.data ?? {}
  const isEnd = pagination === undefined || pagination.currentPage >= pagination.totalPages
  return (
    <Room name="servers" title="Servers" resource={list} isEmpty={list.data !== undefined && servers.length === 0}>
      <div class="filters">
        <Field name="q" label="Search" value={q} onInput={(value) => filter({ q: value, page: '' })} />
        {pagination !== undefined && <span class="muted">{pagination.totalCount} servers</span>}
      </div>
      {servers.length === 0 ? (
        <p>
          No server fits. Register one with <code>postern server add NAMESPACE/NAME URL</code>.
        </p>
      ) : (
        <ul class="rows" data-part="rows" data-end={isEnd}>
          {servers.map(({ qualifiedName, displayName, description = '' }) => (
            <li key={qualifiedName} data-id={qualifiedName}>
              <span class="tile" aria-hidden="true">
                {displayName.slice(0, 1)}
              </span>
              <a href={hrefOf('servers', ...qualifiedName.split('/'))}>
                <Foreign text={displayName} />
              </a>{' '}
              <small class="muted">{qualifiedName}</small>
              <div class="muted">
                <Foreign text={description} />
              </div>
            </li>
          ))}
        </ul>
      )}
      {!isEnd && (
        <Action name="more" onClick={() => filter({ page: String(Number(page) + 1) })}>
          Next page
        </Action>
      )}
    </Room>
  )
}

interface Detail extends Listed {
  readonly tools?: readonly { readonly name: string; readonly description?: string }[] | null
}

export function Server() {
  const name = address.value.path.slice(1).join('/')
  const server = useResource<Detail>(`/servers/${name.split('/').map(encodeURIComponent).join('/')}`)
  const me = useMe()
  const [namespace, setNamespace] = useState('')
  const [id, setId] = useState(name.replace(/^.*\//, ''))
  const [isMock, setMock] = useState(false)
  const chosen = namespace === '' ? (me.data?.namespaces[0]?.name ?? '') : namespace
  const create = useAction(async () => {
    const path = `/connect/${encodeURIComponent(chosen)}/${encodeURIComponent(id)}`
    await ask<Connection>('PUT', path, { body: { server: name, ...(isMock && { mock: { enabled: true } }) } })
    go(hrefOf('connections', chosen, id))
  })
  const may = me.data?.namespaces.find((one) => one.name === chosen)?.may ?? []
  const reason = may.includes('connections:write') ? undefined : 'Your key may not make connections here'
  const { data } = server
  return (
    <Room name="server" title={data?.displayName ?? name} id={name} resource={server}>
      <p class="muted">{name}</p>
      <p>
        <Foreign text={data?.description ?? ''} />
      </p>
      <form
        class="panel"
        onSubmit={(event) => {
          event.preventDefault()
          if (reason === undefined) void create.run()
        }}
      >
        <h2>Connect to it</h2>
        <NamespaceChoice me={me.data} value={chosen} onChange={setNamespace} />
        <Field
          name="id"
          label="Id of the connection"
          value={id}
          onInput={setId}
          isRequired
          error={create.error?.message}
        />
        <label class="check">
          <input type="checkbox" data-field="mock" checked={isMock} onChange={() => setMock(!isMock)} /> mocked: its
          answers are made up, and nothing is contacted
        </label>
        <Action name="create" type="submit" isMain isBusy={create.isBusy} reason={reason}>
          Connect
        </Action>
      </form>
      <section data-part="tools">
        <h2>Tools</h2>
        {data?.tools == null ? (
          <p class="muted">Nobody has asked the server for its tools yet.</p>
        ) : (
          <ul class="rows">
            {data.tools.map((tool) => (
              <li key={tool.name} data-id={tool.name}>
                <Foreign text={tool.name} code />{' '}
                <span class="muted">
                  <Foreign text={tool.description ?? ''} />
                </span>
              </li>
            ))}
          </ul>
        )}
      </section>
    </Room>
  )
}
