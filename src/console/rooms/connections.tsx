/** The connections of a namespace, with their health, and a new one. */

import { useState } from 'preact/hooks'
import type { Connection, ConnectionPage } from '../../model/connection.ts'
import type { Health, HealthPage } from '../../model/health.ts'
import { address, filter, filterOf, hrefOf, parametersOf, pathOf } from '../address.ts'
import { useBursts } from '../events.ts'
import { ask } from '../interface.ts'
import { after, type Page, usePages } from '../pages.ts'
import { Field, Filter, Form, useDraft } from '../parts/field.tsx'
import { Foreign } from '../parts/foreign.tsx'
import { HealthLine } from '../parts/health-line.tsx'
import { NamespaceChoice, NewNamespaceLink, reasonIn, useMe } from '../parts/me.tsx'
import { ConnectionId, createConnection, serverOf, Taken } from '../parts/new-connection.tsx'
import { Action, NewAction } from '../parts/parts.tsx'
import { Room } from '../parts/room.tsx'
import { type Column, Gap, Table } from '../parts/table.tsx'
import { useAction } from '../resource.ts'

/** Connections of a page: as many as one request asks the health of. */
const pageSize = 100
/** Changes that wait to be painted. Past it: a line offers to read the list again. */
const changesMax = 1000

interface Listed {
  readonly namespace: string
  readonly id: string
  readonly health: Health | undefined
  /** Undefined in the list of those that need attention, which knows their health alone. */
  readonly connection?: Connection
}

/** A page of connections, with the health of each. */
async function readConnections(namespace: string, path: string, stop: AbortSignal): Promise<Page<Listed>> {
  const { connections, nextCursor } = await ask<ConnectionPage>('GET', path, { signal: stop })
  const ids = connections.map(({ connectionId }) => connectionId)
  const health = `${pathOf('connect', namespace)}/.health?ids=${encodeURIComponent(ids.join())}`
  const known = ids.length === 0 ? undefined : await ask<HealthPage>('GET', health, { signal: stop })
  const healths = new Map(known?.connections.map((one) => [one.connectionId, one]))
  const items = connections.map((connection) => {
    const id = connection.connectionId
    return { namespace, id, connection, health: healths.get(id) }
  })
  return { items, nextCursor }
}

/** A page of those that need attention. */
async function readUnwell(namespace: string, path: string, stop: AbortSignal): Promise<Page<Listed>> {
  const { connections, nextCursor } = await ask<HealthPage>('GET', path, { signal: stop })
  return { items: connections.map((health) => ({ namespace, id: health.connectionId, health })), nextCursor }
}

const columns = (onChange: (health: Health) => void): readonly Column<Listed>[] => [
  { title: 'Connection', cell: ({ namespace, id }) => <a href={hrefOf('connections', namespace, id)}>{id}</a> },
  {
    title: 'Health',
    width: 'wide',
    cell: ({ namespace, health }) => (health === undefined ? '…' : <HealthLine {...{ health, namespace, onChange }} />),
  },
  { title: 'Name', isClipped: true, cell: ({ connection }) => <Foreign text={connection?.name ?? ''} /> },
  {
    title: 'Server',
    isClipped: true,
    cell: ({ connection }) => (connection === undefined ? '' : <Foreign text={serverOf(connection)} code />),
  },
]

export function Connections() {
  const me = useMe()
  const { query } = address.value
  const namespace = query.get('namespace') ?? me.data?.namespaces[0]?.name
  // The filters of the address are those of the interface: `name`, `metadata.KEY`.
  const [member, value = ''] = [...query].find(([name]) => name.startsWith('metadata.')) ?? []
  const pair = member === undefined ? '' : `${member.slice('metadata.'.length)}=${value}`
  const [typed, setTyped] = useState(pair)
  const isUnwell = filterOf('level') === 'attention'
  const metadata = member === undefined ? '' : `&${encodeURIComponent(member)}=${encodeURIComponent(value)}`
  const filters = parametersOf({ name: filterOf('name') }) + metadata
  const list = isUnwell ? '/.health?' : '?'
  const path = `${pathOf('connect', namespace ?? '')}${list}limit=${pageSize}${isUnwell ? '' : filters}`
  const pages = usePages<Listed>(namespace === undefined ? null : path, (cursor, stop) =>
    (isUnwell ? readUnwell : readConnections)(namespace ?? '', `${path}${after(cursor)}`, stop),
  )
  const isFiltered = filters !== '' || isUnwell
  const change = (health: Health) => pages.change((one) => (one.id === health.connectionId ? { ...one, health } : one))
  useBursts<Health & { namespace: string }>('connection', {
    isWanted: (one) => one.namespace === namespace,
    hear(came) {
      const newest = new Map(came.map((one) => [one.connectionId, one]))
      pages.change((one) => ({ ...one, health: newest.get(one.id) ?? one.health }))
      const all = isFiltered ? undefined : pages.all
      if (all === undefined) return
      for (const { id } of all) newest.delete(id)
      // Somebody has made these meanwhile.
      if (newest.size > 0) pages.miss()
    },
    most: changesMax,
    lose: () => pages.miss(),
  })
  const isNowhere = me.data !== undefined && namespace === undefined
  const isEmpty = isNowhere || pages.isEmpty
  const reason = reasonIn(me.data, namespace, 'connections:write', 'make connections here')
  const options = { namespace: namespace ?? '', ...(pair !== '' && { metadata: pair }) }
  const command = isUnwell || filterOf('name') !== '' ? undefined : { words: ['connection', 'list'], options }
  return (
    <Room
      name="connections"
      title="Connections"
      resource={isNowhere || me.error !== undefined ? me : pages}
      isEmpty={isEmpty}
      request={{ path, command }}
      actions={<NewAction isMain reason={reason} label="New connection" />}
      filters={
        <>
          <NamespaceChoice me={me.data} value={namespace ?? ''} onChange={(chosen) => filter({ namespace: chosen })} />
          <Filter of="level" label="Health" options={['', 'attention']} names={['any', 'down or needs attention']} />
          {!isUnwell && (
            <>
              <Filter of="name" name="q" label="Name" placeholder="its exact name" />
              <Field
                name="metadata"
                label="Metadata"
                value={typed}
                onInput={(text) => {
                  setTyped(text)
                  const [key = '', ...rest] = text.split('=')
                  const named = key !== '' && rest.length > 0 ? { [`metadata.${key}`]: rest.join('=') } : {}
                  filter({ ...(member !== undefined && { [member]: '' }), ...named })
                }}
                placeholder="key=value, like team=crm"
              />
            </>
          )}
        </>
      }
    >
      {filterOf('new') !== '' && reason === undefined && <NewConnection namespace={namespace ?? ''} />}
      <Gap news="changes" pages={pages} />
      {isEmpty && (
        <p>
          {isUnwell
            ? 'No connection here needs attention.'
            : isFiltered
              ? 'No connection fits.'
              : 'There are no connections here yet. '}
          {isNowhere ? <NewNamespaceLink /> : !isFiltered && <a href={hrefOf('servers')}>Find a registered server</a>}
        </p>
      )}
      {!isEmpty && (
        <Table
          label="Connections"
          columns={columns(change)}
          pages={pages}
          hooks={({ namespace: its, id, health }) => ({
            'data-id': `${its}/${id}`,
            'data-level': health?.level ?? 'unknown',
          })}
        />
      )}
    </Room>
  )
}

/** A connection to a server by its URL; `rooms/servers.tsx` makes one to a registered server. */
function NewConnection({ namespace }: { readonly namespace: string }) {
  const [id, setId] = useDraft('connection id')
  const [url, setUrl] = useDraft('connection url')
  const create = useAction(async () => {
    await createConnection(namespace, id, { mcpUrl: url })
    setId('')
    setUrl('')
  })
  return (
    <Form title={`New connection in ${namespace}`} onSend={() => void create.run()}>
      <p class="muted">
        By the URL of an MCP server. For a registered server, or a mock of one,{' '}
        <a href={hrefOf('servers')}>find it first</a>.
      </p>
      <ConnectionId value={id} onInput={setId} error={create.error} />
      <Field
        name="mcpUrl"
        label="URL of the server"
        value={url}
        onInput={setUrl}
        type="url"
        placeholder="https://mcp.example.com/mcp"
        isRequired
        wrong={/^https?:\/\/./.test(url) ? undefined : 'must begin with https:// or http://'}
        error={create.error instanceof Taken ? undefined : create.error?.message}
      />
      <Action name="save" type="submit" isBusy={create.isBusy} label="Create" />
    </Form>
  )
}
