/** One connection: its health, its tools and what became of their definitions, its settings, and its end. */

import { useState } from 'preact/hooks'
import type { Connection as ConnectionBody } from '../../model/connection.ts'
import type { Health, HealthPage } from '../../model/health.ts'
import { address, go, hrefOf } from '../address.ts'
import { useEvents } from '../events.ts'
import { ask } from '../interface.ts'
import { parseJson } from '../json.ts'
import { Confirm } from '../parts/dialog.tsx'
import { Field, Form } from '../parts/field.tsx'
import { Foreign } from '../parts/foreign.tsx'
import { HealthLine } from '../parts/health-line.tsx'
import { useMe } from '../parts/me.tsx'
import { Action, When } from '../parts/parts.tsx'
import { Pins } from '../parts/pins.tsx'
import { Room } from '../parts/room.tsx'
import { useAction, useResource } from '../resource.ts'

export function Connection() {
  const [, namespace = '', id = ''] = address.value.path
  const path = `/connect/${encodeURIComponent(namespace)}/${encodeURIComponent(id)}`
  const me = useMe()
  const connection = useResource<ConnectionBody>(path)
  const may = me.data?.namespaces.find(({ name }) => name === namespace)?.may ?? []
  const reason = may.includes('connections:write') ? undefined : 'Your key may not change connections here'
  const [isAsking, setAsking] = useState(false)
  const remove = useAction(async () => {
    await ask('DELETE', path)
    go(`${hrefOf('connections')}?namespace=${encodeURIComponent(namespace)}`)
  })
  const { data } = connection
  return (
    <Room
      name="connection"
      title={id}
      id={`${namespace}/${id}`}
      resource={connection}
      request={{ path, command: { words: ['connection', 'get'], options: { namespace }, operands: [id] } }}
      actions={
        <>
          <a
            href={`${hrefOf('calls')}?namespace=${encodeURIComponent(namespace)}&connection=${encodeURIComponent(id)}`}
            data-action="go-calls"
          >
            Its calls
          </a>
          <a href={hrefOf('connect', namespace, id)} data-action="go-connect">
            Connect a client
          </a>
          <Action name="delete" reason={reason} onClick={() => setAsking(true)}>
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
            Its clients lose the tools of <b>{id}</b> in {namespace}, and you have to sign in to its server again if you
            create it again.
          </p>
        </Confirm>
      )}
      <OwnHealth namespace={namespace} id={id} path={path} />
      {data !== undefined && (
        <dl>
          <dt>Namespace</dt>
          <dd>
            <a href={hrefOf('namespaces', namespace)}>{namespace}</a>
          </dd>
          <dt>Name</dt>
          <dd>
            <Foreign text={data.name} />
          </dd>
          <dt>Server</dt>
          <dd>
            <Foreign text={data.mcpUrl ?? 'mocked'} code />
          </dd>
          <dt>Created</dt>
          <dd>{data.createdAt !== null && <When at={data.createdAt} />}</dd>
          <dt>Metadata</dt>
          <dd>
            <Foreign text={data.metadata === null ? 'none' : JSON.stringify(data.metadata)} code />
          </dd>
        </dl>
      )}
      <Tools namespace={namespace} id={id} path={path} />
      <Pins path={path} reason={reason} />
      {data !== undefined && <Settings path={path} connection={data} reason={reason} onSaved={connection.again} />}
    </Room>
  )
}

interface PartProps {
  readonly namespace: string
  readonly id: string
  readonly path: string
}

function OwnHealth({ namespace, id, path }: PartProps) {
  const read = useResource<HealthPage>(
    `/connect/${encodeURIComponent(namespace)}/.health?ids=${encodeURIComponent(id)}`,
  )
  const [changed, setChanged] = useState<Health | undefined>()
  useEvents<Health & { namespace: string }>('connection', (one) => {
    if (one.namespace === namespace && one.connectionId === id) setChanged(one)
  })
  const test = useAction(async () => {
    setChanged(await ask<Health>('POST', `${path}/.test`))
    return true
  })
  const health = changed ?? read.data?.connections[0]
  return (
    <section data-part="health" data-level={health?.level ?? 'unknown'}>
      {health === undefined ? (
        <span class="muted">Its health is not known yet.</span>
      ) : (
        <HealthLine {...{ health, namespace }} onChange={setChanged} />
      )}{' '}
      {health?.action?.kind !== 'test' && (
        <Action name="test" isBusy={test.isBusy} onClick={() => void test.run()}>
          Test it
        </Action>
      )}
      {test.done === true && <span role="status">Tested just now.</span>}
      {test.error !== undefined && <p class="wrong">{test.error.message}</p>}
    </section>
  )
}

/** Tools that are shown at first. Past it: as many more with each press. */
const toolsMax = 150

interface ListedTool {
  readonly name: string
  readonly description?: string
}

function Tools({ namespace, id, path }: PartProps) {
  const tools = useResource<{ tools: ListedTool[] }>(`${path}/.tools`)
  const [shown, setShown] = useState(toolsMax)
  return (
    <section data-part="tools">
      <h2>Tools {tools.data !== undefined && <small class="muted">{tools.data.tools.length}</small>}</h2>
      {tools.isLoading ? (
        <p class="muted">asking its server…</p>
      ) : tools.error !== undefined ? (
        <p>
          Its tools are not known: <Foreign text={tools.error.message} />
        </p>
      ) : (
        <ul class="rows pairs">
          {tools.data?.tools.slice(0, shown).map((tool) => (
            <li key={tool.name} data-id={tool.name}>
              <a href={hrefOf('connections', namespace, id, 'tools', tool.name)}>
                <Foreign text={tool.name} code />
              </a>
              <span class="muted">
                <Foreign text={tool.description ?? ''} />
              </span>
            </li>
          ))}
          {(tools.data?.tools.length ?? 0) > shown && (
            <li>
              <Action name="more" onClick={() => setShown(shown + toolsMax)}>
                Show more of {tools.data?.tools.length}
              </Action>
            </li>
          )}
          {tools.data?.tools.length === 0 && <li>Its server has no tools that you may call.</li>}
        </ul>
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
  const [name, setName] = useState(connection.name)
  const [metadata, setMetadata] = useState(JSON.stringify(connection.metadata ?? {}, null, 2))
  const isObject = isJsonObject(metadata)
  const save = useAction(async () => {
    const read = parseJson(metadata) as object
    await ask('PUT', path, { body: { name, metadata: Object.keys(read).length === 0 ? null : read } })
    onSaved()
    return true
  })
  return (
    <details>
      <summary>Change its name and metadata</summary>
      <Form onSend={() => void (reason === undefined && save.run())}>
        <Field name="name" label="Name" value={name} onInput={setName} />
        <Field
          name="metadata"
          label="Metadata"
          value={metadata}
          onInput={setMetadata}
          type="json"
          hint="a JSON object, by which policies and lists find it"
          wrong={isObject ? undefined : 'is not a JSON object'}
          error={save.error?.message}
        />
        <Action name="save" type="submit" isBusy={save.isBusy} reason={reason}>
          Save
        </Action>
        {save.done === true && <p role="status">Saved.</p>}
      </Form>
    </details>
  )
}

function isJsonObject(text: string): boolean {
  try {
    const read = parseJson(text)
    return typeof read === 'object' && read !== null && !Array.isArray(read)
  } catch {
    return false
  }
}
