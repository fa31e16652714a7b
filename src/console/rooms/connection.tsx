/** One connection: its health, its tools and what became of their definitions, its settings, and its end. */

import { useState } from 'preact/hooks'
import type { Connection as ConnectionBody } from '../../model/connection.ts'
import type { Health, HealthPage } from '../../model/health.ts'
import { address, go, hrefOf, hrefWith, pathOf } from '../address.ts'
import { useEvents } from '../events.ts'
import { ask, base } from '../interface.ts'
import { asObject, readJson } from '../json.ts'
import { DangerousAction } from '../parts/dialog.tsx'
import { Field, Form, useDraft } from '../parts/field.tsx'
import { Foreign } from '../parts/foreign.tsx'
import { HealthLine } from '../parts/health-line.tsx'
import { reasonIn, useMe } from '../parts/me.tsx'
import { serverOf } from '../parts/new-connection.tsx'
import { Action, Elsewhere, Facts, When, Wrong } from '../parts/parts.tsx'
import { Pins } from '../parts/pins.tsx'
import { Problem, Room } from '../parts/room.tsx'
import { SomeRows } from '../parts/some-rows.tsx'
import { useAction, useResource } from '../resource.ts'

export function Connection() {
  const [, namespace = '', id = ''] = address.value.path
  const path = pathOf('connect', namespace, id)
  const me = useMe()
  const connection = useResource<ConnectionBody>(path)
  const health = useHealth(namespace, id)
  const reason = reasonIn(me.data, namespace, 'connections:write', 'change connections here')
  const { data } = connection
  return (
    <Room
      name="connection"
      title={id}
      id={`${namespace}/${id}`}
      resource={connection}
      request={{ path, command: { words: ['connection', 'get'], options: { namespace }, operands: [id] } }}
      actions={<Actions {...{ namespace, id, path, reason }} isThere={connection.error === undefined} />}
    >
      <OwnHealth {...{ namespace, path, health }} />
      {data !== undefined && (
        <Facts
          of={{
            Namespace: <a href={hrefOf('namespaces', namespace)}>{namespace}</a>,
            Name: <Foreign text={data.name} />,
            Server: <Foreign text={serverOf(data)} code />,
            Created: data.createdAt !== null && <When at={data.createdAt} />,
            'Sign-in': data.mcpUrl !== null && data.mock?.enabled !== true && (
              <Elsewhere href={`${base}${path}/setup`}>See who is signed in, sign in or out, enter values</Elsewhere>
            ),
            Metadata: <Foreign text={data.metadata === null ? 'none' : JSON.stringify(data.metadata)} code />,
          }}
        />
      )}
      {/* A change of its health may be one of what its server lists. */}
      <Tools key={`tools ${health.changes}`} {...{ namespace, id, path, health }} />
      <Pins key={`pins ${health.changes}`} path={path} reason={reason} />
      {data !== undefined && <Settings path={path} connection={data} reason={reason} onSaved={connection.again} />}
    </Room>
  )
}

type ActionsProps = Pick<ToolsProps, 'namespace' | 'id' | 'path'> & Pick<SettingsProps, 'reason'>

function Actions({ namespace, id, path, reason, isThere }: ActionsProps & { readonly isThere: boolean }) {
  const all = hrefWith({ namespace }, 'connections')
  if (!isThere) return <a href={all}>All connections</a>
  return (
    <>
      <a href={hrefWith({ namespace, connection: id }, 'calls')} data-action="go-calls">
        Its calls
      </a>
      <a href={hrefOf('connect', namespace, id)} data-action="go-connect">
        Connect a client
      </a>
      <DangerousAction
        act="Delete"
        of={id}
        reason={reason}
        onAct={() => ask('DELETE', path)}
        onDone={() => go(all, `${id} was deleted.`)}
      >
        <p>
          Its clients lose the tools of <b>{id}</b> in {namespace}, and you have to sign in to its server again if you
          create it again.
        </p>
      </DangerousAction>
    </>
  )
}

/** The health of one connection, as it changes. */
function useHealth(namespace: string, id: string) {
  const path = `${pathOf('connect', namespace)}/.health?ids=${encodeURIComponent(id)}`
  const read = useResource<HealthPage>(path)
  const [changed, setChanged] = useState<{ readonly health?: Health; readonly count: number }>({ count: 0 })
  const change = (health: Health) => setChanged(({ count }) => ({ health, count: count + 1 }))
  useEvents<Health & { namespace: string }>('connection', (one) => {
    if (one.namespace === namespace && one.connectionId === id) change(one)
  })
  useEvents('gap', async () => {
    const { connections } = await ask<HealthPage>('GET', path).catch(() => ({ connections: [] }))
    if (connections[0] !== undefined) change(connections[0])
  })
  const now = changed.health ?? read.data?.connections[0]
  return { now, isRead: !read.isLoading, change, changes: changed.count, error: read.error }
}

interface PartProps {
  readonly namespace: string
  readonly path: string
  readonly health: ReturnType<typeof useHealth>
}

function OwnHealth({ namespace, path, health: { now, change, error } }: PartProps) {
  const test = useAction(async () => change(await ask<Health>('POST', `${path}/.test`)))
  return (
    <section class="now" data-part="health" data-level={now?.level ?? 'unknown'}>
      {now === undefined ? (
        <span class="muted">
          Its health is not known yet. <Foreign text={error?.message ?? ''} />
        </span>
      ) : (
        <HealthLine health={now} namespace={namespace} onChange={change} />
      )}{' '}
      {now?.action?.kind !== 'test' && <Action name="test" does={test} label="Test it" />}
      {test.isDone && <span role="status">Tested just now.</span>}
      <Wrong error={test.error} />
    </section>
  )
}

interface ListedTool {
  readonly name: string
  readonly description?: string
}

type ToolsProps = PartProps & { readonly id: string }

function Tools({ namespace, id, path, health: { now, isRead } }: ToolsProps) {
  // Its server is not asked before somebody has signed in to it: it would only refuse.
  const isClosed = now?.action?.kind === 'sign-in' || now?.action?.kind === 'input'
  const tools = useResource<{ tools: ListedTool[] }>(isClosed || !isRead ? null : `${path}/.tools`)
  return (
    <section data-part="tools">
      <h2>Tools {tools.data !== undefined && <small class="muted">{tools.data.tools.length}</small>}</h2>
      {isClosed ? (
        <p class="muted">
          They are known once somebody has {now?.action?.kind === 'input' ? 'set it up' : 'signed in'}.
        </p>
      ) : tools.isLoading || !isRead ? (
        <p class="muted">asking its server…</p>
      ) : tools.error !== undefined ? (
        <Problem error={tools.error} again={tools.again} />
      ) : (
        <>
          <SomeRows
            isPairs
            items={tools.data?.tools ?? []}
            row={(tool) => (
              <li key={tool.name} data-id={tool.name}>
                <a href={hrefOf('connections', namespace, id, 'tools', tool.name)}>
                  <Foreign text={tool.name} code />
                </a>
                <Foreign as="span" class="muted" text={tool.description ?? ''} />
              </li>
            )}
          />
          {tools.data?.tools.length === 0 && <p>Its server has no tools that you may call.</p>}
        </>
      )}
    </section>
  )
}

interface SettingsProps {
  readonly path: string
  readonly connection: ConnectionBody
  readonly reason: string | undefined
  readonly onSaved: () => void
}

/** Name and metadata: both are written, and everything else stays. */
function Settings({ path, connection, reason, onSaved }: SettingsProps) {
  const [name, setName] = useDraft(`${path} name`, connection.name)
  const [metadata, setMetadata] = useDraft(`${path} metadata`, JSON.stringify(connection.metadata ?? {}, null, 2))
  const read = asObject(readJson(metadata))
  const save = useAction(async (given: object) => {
    await ask('PUT', path, { body: { name, metadata: Object.keys(given).length === 0 ? null : given } })
    onSaved()
  })
  const words = save.error?.message
  const isOfName = words?.startsWith('name:')
  return (
    <details>
      <summary>Change its name and metadata</summary>
      <Form onSend={() => void (reason === undefined && read !== undefined && save.run(read))}>
        <Field name="name" label="Name" value={name} onInput={setName} error={isOfName ? words : undefined} />
        <Field
          name="metadata"
          label="Metadata"
          value={metadata}
          onInput={setMetadata}
          type="json"
          hint="a JSON object, by which policies and lists find it"
          wrong={read === undefined ? 'is not a JSON object' : undefined}
          error={isOfName ? undefined : words}
        />
        <Action name="save" type="submit" isBusy={save.isBusy} reason={reason} label="Save" />
        {save.isDone && <p role="status">Saved.</p>}
      </Form>
    </details>
  )
}
