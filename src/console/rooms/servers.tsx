/** Registered servers, and one of them, from which a connection is made. */

import { useState } from 'preact/hooks'
import type { Connection } from '../../model/connection.ts'
import { address, filter, go, hrefOf } from '../address.ts'
import { ask, isTaken } from '../interface.ts'
import { parseJson } from '../json.ts'
import { idHint, isConnectionId } from '../names.ts'
import { type Numbered, nextOf, type Page, stateOf, usePages } from '../pages.ts'
import { Field, Form, useDraft } from '../parts/field.tsx'
import { Foreign, visible } from '../parts/foreign.tsx'
import { NamespaceChoice, useMe } from '../parts/me.tsx'
import { Action } from '../parts/parts.tsx'
import { Room } from '../parts/room.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { useAction, useResource } from '../resource.ts'

interface Listed {
  readonly qualifiedName: string
  readonly displayName: string
  readonly description?: string
}
interface ServersBody extends Numbered {
  readonly servers: readonly Listed[]
}

const columns: readonly Column<Listed>[] = [
  {
    title: 'Server',
    cell: ({ qualifiedName, displayName }) => (
      <>
        <span class="tile" aria-hidden="true">
          {visible(displayName.slice(0, 1))}
        </span>
        <a href={hrefOf('servers', ...qualifiedName.split('/'))}>
          <Foreign text={displayName} />
        </a>
      </>
    ),
  },
  { title: 'Name', cell: ({ qualifiedName }) => <code>{qualifiedName}</code> },
  { title: 'Description', cell: ({ description = '' }) => <Foreign text={description} /> },
]

/** Reads the page of this number, which stands for a cursor. */
async function readServers(q: string, page: string, signal: AbortSignal): Promise<Page<Listed>> {
  const body = await ask<ServersBody>('GET', pathOf(q, page), { signal })
  return { items: body.servers, nextCursor: nextOf(body) }
}

const pathOf = (q: string, page: string) =>
  `/servers?pageSize=100&page=${page}${q === '' ? '' : `&q=${encodeURIComponent(q)}`}`

export function Servers() {
  const q = address.value.query.get('q') ?? ''
  const pages = usePages<Listed>(`servers ${q}`, (cursor, stop) => readServers(q, cursor ?? '1', stop))
  const list = stateOf(pages)
  return (
    <Room
      name="servers"
      title="Servers"
      resource={list}
      isEmpty={list.isEmpty}
      request={{
        path: pathOf(q, '1'),
        command: q === '' ? { words: ['server', 'list'] } : { words: ['server', 'search'], operands: [q] },
      }}
      actions={
        <Action name="create" onClick={() => filter({ new: address.value.query.get('new') === null ? 'yes' : '' })}>
          Register a server
        </Action>
      }
      filters={<Field name="q" label="Search" value={q} onInput={(value) => filter({ q: value })} />}
    >
      {address.value.query.get('new') !== null && <NewServer />}
      {list.isEmpty && <p>{q === '' ? 'No server is registered here yet.' : 'No server fits.'}</p>}
      {!list.isEmpty && pages !== undefined && (
        <Table
          label="Servers"
          columns={columns}
          pages={pages}
          hooks={({ qualifiedName }) => ({ 'data-id': qualifiedName })}
        />
      )}
    </Room>
  )
}

/** Registers a server by its URL, or by a whole entry as JSON. */
function NewServer() {
  const [name, setName] = useDraft('server name')
  const [source, setSource] = useDraft('server source')
  const isUrl = /^https?:\/\//.test(source.trim())
  const create = useAction(async () => {
    const body = isUrl ? { mcpUrl: source.trim() } : parseJson(source)
    await ask('PUT', `/servers/${name.split('/').map(encodeURIComponent).join('/')}`, { body })
    setName('')
    setSource('')
    go(hrefOf('servers', ...name.split('/')))
  })
  return (
    <Form title="Register a server" onSend={() => void create.run()}>
      <Field
        name="name"
        label="Name"
        value={name}
        onInput={setName}
        isRequired
        hint="like acme/crm: a namespace of yours, and a name in it"
        wrong={/^[^/]+\/[^/]+$/.test(name) ? undefined : 'must be NAMESPACE/NAME'}
      />
      <Field
        name="source"
        label="URL, or the entry as JSON"
        value={source}
        onInput={setSource}
        type="json"
        isRequired
        wrong={source === '' ? 'is required' : undefined}
        error={create.error instanceof SyntaxError ? 'is neither a URL nor JSON' : create.error?.message}
      />
      <Action name="save" type="submit" isBusy={create.isBusy}>
        Register
      </Action>
    </Form>
  )
}

interface Detail extends Listed {
  readonly tools?: readonly { readonly name: string; readonly description?: string }[] | null
}

export function Server() {
  const name = address.value.path.slice(1).join('/')
  const path = `/servers/${name.split('/').map(encodeURIComponent).join('/')}`
  const server = useResource<Detail>(path)
  const me = useMe()
  const [namespace, setNamespace] = useState('')
  const [id, setId] = useState(name.replace(/^.*\//, ''))
  const [isMock, setMock] = useState(false)
  const chosen = namespace === '' ? (me.data?.namespaces[0]?.name ?? '') : namespace
  const create = useAction(async () => {
    const path = `/connect/${encodeURIComponent(chosen)}/${encodeURIComponent(id)}`
    if (await isTaken(path)) throw new Error(`${id} is there already: choose another id`)
    await ask<Connection>('PUT', path, { body: { server: name, ...(isMock && { mock: { enabled: true } }) } })
    go(hrefOf('connections', chosen, id))
  })
  const may = me.data?.namespaces.find((one) => one.name === chosen)?.may ?? []
  const reason = may.includes('connections:write') ? undefined : 'Your key may not make connections here'
  const { data } = server
  return (
    <Room
      name="server"
      title={data?.displayName ?? name}
      id={name}
      resource={server}
      request={{ path, command: { words: ['server', 'get'], operands: [name] } }}
    >
      <p class="muted">{name}</p>
      <p>
        <Foreign text={data?.description ?? ''} />
      </p>
      <Form title="Connect to it" onSend={() => void (reason === undefined && create.run())}>
        <NamespaceChoice me={me.data} value={chosen} onChange={setNamespace} />
        <Field
          name="id"
          label="Id of the connection"
          value={id}
          onInput={setId}
          isRequired
          hint={idHint}
          wrong={isConnectionId(id) ? undefined : `must be ${idHint}`}
          error={create.error?.message}
        />
        <label class="check">
          <input type="checkbox" data-field="mock" checked={isMock} onChange={() => setMock(!isMock)} /> mocked: its
          answers are made up, and nothing is contacted
        </label>
        <Action name="create" type="submit" isMain isBusy={create.isBusy} reason={reason}>
          Connect
        </Action>
      </Form>
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
