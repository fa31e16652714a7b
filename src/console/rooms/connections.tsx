/** The connections of a namespace, and one of them. */

import { useState } from 'preact/hooks'
import type { Connection as ConnectionBody, ConnectionPage } from '../../model/connection.ts'
import type { Health, HealthPage } from '../../model/health.ts'
import { address, filter, go, hrefOf } from '../address.ts'
import { useEvents } from '../events.ts'
import { ask } from '../interface.ts'
import { type Page, stateOf, usePages } from '../pages.ts'
import { Confirm } from '../parts/dialog.tsx'
import { Foreign } from '../parts/foreign.tsx'
import { NamespaceChoice, useMe } from '../parts/me.tsx'
import { Action, Elsewhere, Field, HealthLine, Room } from '../parts/parts.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { useAction, useResource } from '../resource.ts'

type ConnectionPageBody = typeof ConnectionPage.static
/** Ids of which one request asks the health. */
const pageSize = 100

interface Listed {
  readonly namespace: string
  readonly connection: ConnectionBody
  readonly health: Health | undefined
}

/** A page of connections, with the health of each. */
async function readConnections(
  namespace: string,
  filters: string,
  cursor: string | null,
  stop: AbortSignal,
): Promise<Page<Listed>> {
  const path = `/connect/${encodeURIComponent(namespace)}`
  const after = cursor === null ? '' : `&cursor=${encodeURIComponent(cursor)}`
  const page = await ask<ConnectionPageBody>('GET', `${path}?limit=${pageSize}${filters}${after}`, { signal: stop })
  const ids = page.connections.map(({ connectionId }) => connectionId).join()
  const { connections } =
    ids === ''
      ? { connections: [] }
      : await ask<HealthPage>('GET', `${path}/.health?ids=${encodeURIComponent(ids)}`, { signal: stop })
  const healths = new Map(connections.map((one) => [one.connectionId, one]))
  return {
    items: page.connections.map((connection) => ({
      namespace,
      connection,
      health: healths.get(connection.connectionId),
    })),
    nextCursor: page.nextCursor,
  }
}

const columns: readonly Column<Listed>[] = [
  {
    title: 'Connection',
    cell: ({ namespace, connection: { connectionId } }) => (
      <a href={hrefOf('connections', namespace, connectionId)}>{connectionId}</a>
    ),
  },
  { title: 'Health', cell: ({ health }) => (health === undefined ? '…' : <HealthLine health={health} />) },
  { title: 'Name', cell: ({ connection: { name } }) => <Foreign text={name} /> },
  { title: 'Server', cell: ({ connection: { mcpUrl } }) => <Foreign text={mcpUrl ?? 'mocked'} code /> },
]

export function Connections() {
  const me = useMe()
  const { query } = address.value
  const namespace = query.get('namespace') ?? me.data?.namespaces[0]?.name
  const q = query.get('q') ?? ''
  const filters = q === '' ? '' : `&name=${encodeURIComponent(q)}`
  const pages = usePages<Listed>(namespace === undefined ? null : `${namespace} ${filters}`, (cursor, stop) =>
    readConnections(namespace ?? '', filters, cursor, stop),
  )
  useEvents<Health & { namespace: string }>('connection', ({ namespace: of, ...health }) => {
    if (of !== namespace) return
    pages?.change((one) => (one.connection.connectionId === health.connectionId ? { ...one, health } : one))
  })
  const isEmpty = pages?.isWhole === true && pages.length === 0
  const may = me.data?.namespaces.find((one) => one.name === namespace)?.may ?? []
  const reason = may.includes('connections:write') ? undefined : 'Your key may not make connections here'
  return (
    <Room
      name="connections"
      title="Connections"
      resource={me.error === undefined ? stateOf(pages) : me}
      isEmpty={isEmpty}
      actions={
        <Action name="create" isMain reason={reason} onClick={() => go(`${hrefOf('servers')}`)}>
          New connection
        </Action>
      }
    >
      <div class="filters">
        <NamespaceChoice me={me.data} value={namespace ?? ''} onChange={(value) => filter({ namespace: value })} />
        <Field name="q" label="Name" value={q} onInput={(value) => filter({ q: value })} hint="exactly this name" />
      </div>
      {isEmpty ? (
        <p>
          {q === '' ? 'There are no connections here yet.' : 'No connection has this name.'}{' '}
          <a href={hrefOf('servers')}>Find a server</a> to connect to.
        </p>
      ) : (
        pages !== undefined && (
          <Table
            label="Connections"
            columns={columns}
            pages={pages}
            hooks={({ namespace: of, connection, health }) => ({
              'data-id': `${of}/${connection.connectionId}`,
              'data-level': health?.level ?? 'unknown',
            })}
          />
        )
      )}
    </Room>
  )
}

interface ListedTool {
  readonly name: string
  readonly description?: string
}

export function Connection() {
  const [, namespace = '', id = ''] = address.value.path
  const path = `/connect/${encodeURIComponent(namespace)}/${encodeURIComponent(id)}`
  const connection = useResource<ConnectionBody>(path)
  const health = useResource<HealthPage>(
    `/connect/${encodeURIComponent(namespace)}/.health?ids=${encodeURIComponent(id)}`,
  )
  const tools = useResource<{ tools: ListedTool[] }>(`${path}/.tools`)
  const [tested, setTested] = useState<Health | undefined>()
  const test = useAction(async () => setTested(await ask<Health>('POST', `${path}/.test`)))
  const [isAsking, setAsking] = useState(false)
  const remove = useAction(async () => {
    await ask('DELETE', path)
    go(`${hrefOf('connections')}?namespace=${encodeURIComponent(namespace)}`)
  })
  const [changed, setChanged] = useState<Health | undefined>()
  useEvents<Health & { namespace: string }>('connection', (one) => {
    if (one.namespace === namespace && one.connectionId === id) setChanged(one)
  })
  const known = changed ?? tested ?? health.data?.connections[0]
  const { data } = connection
  return (
    <Room
      name="connection"
      title={id}
      id={`${namespace}/${id}`}
      resource={connection}
      actions={
        <>
          <a href={hrefOf('connect', namespace, id)} data-action="go-connect">
            Connect a client
          </a>
          <Action name="test" isBusy={test.isBusy} onClick={() => void test.run()}>
            Test
          </Action>
          <Action name="delete" onClick={() => setAsking(true)}>
            Delete
          </Action>
        </>
      }
    >
      {isAsking && (
        <Confirm
          act={`Delete ${id}`}
          name="delete"
          isBusy={remove.isBusy}
          error={remove.error}
          onAct={() => void remove.run()}
          onClose={() => setAsking(false)}
        >
          <p>
            Its clients lose the tools of <b>{id}</b> in {namespace}, and somebody signs in again if it is made anew.
          </p>
        </Confirm>
      )}
      <section data-part="health">
        {known === undefined ? <span class="muted">Its health is not known yet.</span> : <HealthLine health={known} />}
        {test.error !== undefined && <p class="wrong">{test.error.message}</p>}
      </section>
      {data !== undefined && (
        <dl>
          <dt>Name</dt>
          <dd>
            <Foreign text={data.name} />
          </dd>
          <dt>Server</dt>
          <dd>{data.mcpUrl === null ? 'mocked' : <Elsewhere href={data.mcpUrl}>its address</Elsewhere>}</dd>
          <dt>Made</dt>
          <dd>{data.createdAt}</dd>
          <dt>Metadata</dt>
          <dd>
            <Foreign text={data.metadata === null ? 'none' : JSON.stringify(data.metadata)} code />
          </dd>
        </dl>
      )}
      <section data-part="tools">
        <h2>Tools</h2>
        {tools.isLoading ? (
          <p class="muted">asking its server…</p>
        ) : tools.error !== undefined ? (
          <p>
            Its tools are not known: <Foreign text={tools.error.message} />
          </p>
        ) : (
          <ul class="rows">
            {tools.data?.tools.map((tool) => (
              <li key={tool.name} data-id={tool.name}>
                <a href={hrefOf('connections', namespace, id, 'tools', tool.name)}>
                  <Foreign text={tool.name} code />
                </a>{' '}
                <span class="muted">
                  <Foreign text={tool.description ?? ''} />
                </span>
              </li>
            ))}
            {tools.data?.tools.length === 0 && <li>Its server has no tools that you may call.</li>}
          </ul>
        )}
      </section>
    </Room>
  )
}
