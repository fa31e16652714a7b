/** Registered servers, and one of them, from which a connection is made. */

import type { Me } from '../../model/organization.ts'
import type { ServerDetail, ServerItem } from '../../model/server.ts'
import { address, filterOf, go, hrefOf, parametersOf, pathOf } from '../address.ts'
import { ask } from '../interface.ts'
import { parseJson } from '../json.ts'
import { numbered, usePages } from '../pages.ts'
import { DangerousAction } from '../parts/dialog.tsx'
import { Field, Filter, Form, useDraft } from '../parts/field.tsx'
import { Foreign, visible } from '../parts/foreign.tsx'
import { NamespaceChoice, reasonIn, useMe } from '../parts/me.tsx'
import { ConnectionId, createConnection, Taken } from '../parts/new-connection.tsx'
import { Action, Facts, NewAction, Wrong } from '../parts/parts.tsx'
import { Room } from '../parts/room.tsx'
import { SomeRows } from '../parts/some-rows.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { useAction, useResource } from '../resource.ts'

type Listed = Pick<ServerItem, 'qualifiedName' | 'displayName' | 'description'>

const columns: readonly Column<Listed>[] = [
  {
    title: 'Server',
    cell: ({ qualifiedName, displayName }) => (
      <>
        <span class="tile" aria-hidden="true">
          {visible([...displayName][0] ?? '')}
        </span>
        <a href={hrefOf('servers', ...qualifiedName.split('/'))}>
          <Foreign text={displayName} />
        </a>
      </>
    ),
  },
  { title: 'Name', cell: ({ qualifiedName }) => <code>{qualifiedName}</code> },
  { title: 'Description', cell: ({ description }) => <Foreign text={description} /> },
]

const listPath = (q: string, page: string) => `/servers?pageSize=100&page=${page}${parametersOf({ q })}`

const pathOfServer = (name: string) => pathOf('servers', ...name.split('/'))

export function Servers() {
  const q = filterOf('q')
  const me = useMe()
  const mayRegister = me.data?.more === true || me.data?.namespaces.some(({ may }) => may.includes('servers:write'))
  const reason =
    mayRegister === true
      ? undefined
      : 'Your key manages no namespace in which it could register one: make a namespace, or ask an admin of your organization'
  const read = numbered<Listed>('servers', (page) => listPath(q, page))
  const pages = usePages(`servers ${q}`, read)
  return (
    <Room
      name="servers"
      title="Servers"
      resource={pages}
      request={{
        path: listPath(q, '1'),
        command: q === '' ? { words: ['server', 'list'] } : { words: ['server', 'search'], operands: [q] },
      }}
      actions={<NewAction reason={reason} label="Register a server" />}
      filters={<Filter of="q" label="Search" />}
    >
      {filterOf('new') !== '' && <NewServer reason={reason} />}
      {pages.isEmpty ? (
        <p>{q === '' ? 'No server is registered here yet.' : 'No server fits.'}</p>
      ) : (
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
function NewServer({ reason }: { readonly reason: string | undefined }) {
  const [name, setName] = useDraft('server name')
  // An entry may have headers in it, and a URL a key.
  const [source, setSource] = useDraft('server source', '', (text) => /^https?:\/\/[^?@]*$/.test(text))
  const isUrl = /^https?:\/\//.test(source.trim())
  const create = useAction(async () => {
    const body = isUrl ? { mcpUrl: source.trim() } : parseJson(source)
    await ask('PUT', pathOfServer(name), { body })
    setName('')
    setSource('')
    go(hrefOf('servers', ...name.split('/')))
  })
  return (
    <Form title="Register a server" onSend={() => void (reason === undefined && create.run())}>
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
      <Action name="save" type="submit" isBusy={create.isBusy} reason={reason} label="Register" />
    </Form>
  )
}

export function Server() {
  const name = address.value.path.slice(1).join('/')
  const path = pathOfServer(name)
  const server = useResource<ServerDetail>(path)
  const me = useMe()
  const { data } = server
  const reason = reasonIn(me.data, name.split('/')[0], 'servers:write', 'change servers of its namespace')
  return (
    <Room
      name="server"
      title={data?.displayName ?? name}
      id={name}
      resource={server}
      request={{ path, command: { words: ['server', 'get'], operands: [name] } }}
      actions={
        <DangerousAction
          act="Delete"
          of={name}
          reason={reason}
          onAct={() => ask('DELETE', path)}
          onDone={() => go(hrefOf('servers'), `${name} was deleted.`)}
        >
          <p>Nobody finds it any more. Connections to it stay as they are.</p>
        </DangerousAction>
      }
    >
      <Foreign as="p" text={data?.description ?? ''} />
      <Facts of={{ Name: name, URL: <Foreign text={data?.deploymentUrl ?? 'none'} code /> }} />
      <ConnectTo name={name} me={me.data} />
      <section data-part="tools">
        <h2>Tools</h2>
        {data?.tools == null ? (
          <p class="muted">Nobody has asked the server for its tools yet.</p>
        ) : (
          <SomeRows
            isPairs
            items={data.tools}
            row={(tool) => (
              <li key={tool.name} data-id={tool.name}>
                <Foreign text={tool.name} code />
                <Foreign as="span" class="muted" text={tool.description ?? ''} />
              </li>
            )}
          />
        )}
      </section>
    </Room>
  )
}

/** Makes a connection to a server, or to a mock of it. */
function ConnectTo({ name, me }: { readonly name: string; readonly me: Me | undefined }) {
  const [chosen, setChosen] = useDraft(`${name} namespace`)
  const [id, setId] = useDraft(`${name} id`, name.replace(/^.*\//, ''))
  const [mock, setMock] = useDraft(`${name} mock`)
  const isMock = mock === 'yes'
  const namespace = chosen === '' ? (me?.namespaces[0]?.name ?? '') : chosen
  const reason = reasonIn(me, namespace, 'connections:write', 'make connections here')
  const create = useAction(async () => {
    await createConnection(namespace, id, { server: name, ...(isMock && { mock: { enabled: true } }) })
    setMock('')
  })
  return (
    <Form title="Connect to it" onSend={() => void (reason === undefined && create.run())}>
      <NamespaceChoice me={me} value={namespace} onChange={setChosen} />
      <ConnectionId value={id} onInput={setId} error={create.error} />
      <label class="check">
        <input type="checkbox" data-field="mock" checked={isMock} onChange={() => setMock(isMock ? '' : 'yes')} />{' '}
        mocked: its answers are made up, and nothing is contacted
      </label>
      <Wrong error={create.error instanceof Taken ? undefined : create.error} />
      <Action name="create" type="submit" isMain isBusy={create.isBusy} reason={reason} label="Connect" />
    </Form>
  )
}
