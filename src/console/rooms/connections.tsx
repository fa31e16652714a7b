/** The connections of a namespace, and one of them. */

import { useState } from 'preact/hooks'
import type { Connection as ConnectionBody, ConnectionPage } from '../../model/connection.ts'
import type { Health, HealthPage } from '../../model/health.ts'
import { address, filter, go, hrefOf } from '../address.ts'
import { useEvents } from '../events.ts'
import { ask } from '../interface.ts'
import { Confirm } from '../parts/dialog.tsx'
import { Foreign } from '../parts/foreign.tsx'
import { NamespaceChoice, useMe } from '../parts/me.tsx'
import { Action, Elsewhere, Field, HealthLine, Room } from '../parts/parts.tsx'
import { useAction, usePages, useResource } from '../resource.ts'

type Page = typeof ConnectionPage.static

export function Connections() {
  const me = useMe()
  const { query } = address.value
  const namespace = query.get('namespace') ?? me.data?.namespaces[0]?.name
  const q = query.get('q') ?? ''
  const name = q === '' ? '' : `&name=${encodeURIComponent(q)}`
  const path = namespace === undefined ? null : `/connect/${encodeURIComponent(namespace)}?limit=50${name}`
  const list = usePages<Page, ConnectionBody>(path, ({ connections }) => connections)
  const isEmpty = !list.isLoading && list.items.length === 0
  const may = me.data?.namespaces.find((one) => one.name === namespace)?.may ?? []
  const reason = may.includes('connections:write') ? undefined : 'Your key may not make connections here'
  return (
    <Room
      name="connections"
      title="Connections"
      resource={me.error === undefined ? { ...list, isLoading: list.isLoading && list.items.length === 0 } : me}
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
        <ConnectionTable namespace={namespace ?? ''} items={list.items} hasMore={list.hasMore} more={list.more} />
      )}
    </Room>
  )
}

interface TableProps {
  readonly namespace: string
  readonly items: readonly ConnectionBody[]
  readonly hasMore: boolean
  readonly more: () => void
}

/** Ids of which one request asks the health. */
const healthIdsMax = 100

function ConnectionTable({ namespace, items, hasMore, more }: TableProps) {
  const ids = items.slice(-healthIdsMax).map(({ connectionId }) => connectionId)
  const path = ids.length === 0 ? null : `/connect/${encodeURIComponent(namespace)}/.health?ids=${ids.join()}`
  const health = useResource<HealthPage>(path)
  const [changed, setChanged] = useState<ReadonlyMap<string, Health>>(new Map())
  useEvents<Health & { namespace: string }>('connection', ({ namespace: of, ...one }) => {
    if (of === namespace) setChanged((before) => new Map(before).set(one.connectionId, one))
  })
  const levels = new Map(health.data?.connections.map((one) => [one.connectionId, one]))
  for (const [id, one] of changed) levels.set(id, one)
  return (
    <>
      <table>
        <thead>
          <tr>
            <th>Connection</th>
            <th>Health</th>
            <th>Name</th>
            <th>Server</th>
          </tr>
        </thead>
        <tbody data-part="rows" data-end={!hasMore}>
          {items.map(({ connectionId, name, mcpUrl }) => {
            const known = levels.get(connectionId)
            return (
              <tr key={connectionId} data-id={`${namespace}/${connectionId}`} data-level={known?.level ?? 'unknown'}>
                <td>
                  <a href={hrefOf('connections', namespace, connectionId)}>{connectionId}</a>
                </td>
                <td>{known === undefined ? <span class="muted">…</span> : <HealthLine health={known} />}</td>
                <td>
                  <Foreign text={name} />
                </td>
                <td class="muted">
                  <Foreign text={mcpUrl ?? 'mocked'} code />
                </td>
              </tr>
            )
          })}
        </tbody>
      </table>
      {hasMore && (
        <p>
          <Action name="more" onClick={more}>
            More connections
          </Action>
        </p>
      )}
    </>
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
