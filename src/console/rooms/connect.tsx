/** Connects a client to a connection, or to a whole namespace: its URL, what each client needs, and its arrival. */

import { useEffect, useState } from 'preact/hooks'
import type { ConnectionPage } from '../../model/connection.ts'
import type { Recipe, RecipeList } from '../../model/recipe.ts'
import { address, filter, go, hrefOf, hrefWith, pathOf } from '../address.ts'
import { useEvents } from '../events.ts'
import { Field } from '../parts/field.tsx'
import { Foreign } from '../parts/foreign.tsx'
import { NamespaceChoice, NewNamespaceLink, useMe } from '../parts/me.tsx'
import { Copied, When } from '../parts/parts.tsx'
import { Code } from '../parts/request.tsx'
import { Room } from '../parts/room.tsx'
import { useResource } from '../resource.ts'

const names: Readonly<Record<string, string>> = {
  ...{ 'claude-code': 'Claude Code', cursor: 'Cursor', vscode: 'VS Code', codex: 'Codex', windsurf: 'Windsurf' },
  ...{ cline: 'Cline', chatgpt: 'ChatGPT', opencode: 'opencode', 'mcp-remote': 'mcp-remote', json: 'any other' },
}

/** `file`: where the text belongs. */
type Step = Pick<Recipe, 'file' | 'content' | 'command' | 'link'> & { readonly client: string }

const json = (value: object) => JSON.stringify(value, null, 2)

/** Clients of which the interface has no recipe. */
const others = (name: string, url: string): readonly Step[] => [
  { client: 'chatgpt', file: 'Settings, Connectors, Create: the URL, with OAuth', content: url },
  { client: 'opencode', file: 'opencode.json', content: json({ mcp: { [name]: { type: 'remote', url } } }) },
  {
    client: 'mcp-remote',
    file: 'for clients that can only start a program',
    content: json({ mcpServers: { [name]: { command: 'npx', args: ['mcp-remote', url] } } }),
  },
  { client: 'json', file: 'mcp.json', content: json({ mcpServers: { [name]: { type: 'http', url } } }) },
]

export function Connect() {
  const me = useMe()
  const [, named, id = ''] = address.value.path
  const { query } = address.value
  const namespace = named ?? query.get('namespace') ?? me.data?.namespaces[0]?.name ?? ''
  const path = pathOf('connect', namespace)
  const of = id === '' ? '' : `?connection=${encodeURIComponent(id)}`
  const recipes = useResource<RecipeList>(namespace === '' ? null : `${path}/.clients${of}`)
  const { data } = recipes
  const chosen = query.get('client') ?? 'claude-code'
  const steps: Step[] = [
    ...(data?.clients.filter(({ kind }) => kind === 'config') ?? []),
    ...others(id === '' ? namespace : id, data?.url ?? ''),
  ]
  const step = steps.find(({ client }) => client === chosen)
  const clients = steps.map(({ client }) => client)
  return (
    <Room
      name="connect"
      title="Connect a client"
      {...(id !== '' && { id: `${namespace}/${id}` })}
      resource={me.error === undefined && me.data !== undefined && namespace !== '' ? recipes : me}
      isEmpty={me.data !== undefined && namespace === ''}
      request={{ path: `${path}/.clients${of}` }}
      filters={
        <>
          <NamespaceChoice
            me={me.data}
            value={namespace}
            onChange={(value) => go(hrefWith({ namespace: value }, 'connect'))}
          />
          <ConnectionChoice namespace={namespace} id={id} />
          <Field
            name="client"
            label="Client"
            value={chosen}
            options={clients}
            names={clients.map((client) => names[client] ?? client)}
            onInput={(client) => filter({ client })}
          />
        </>
      }
    >
      {data === undefined ? (
        <p>
          There are no namespaces yet. <NewNamespaceLink /> and a connection in it.
        </p>
      ) : (
        <>
          <p>
            The client needs this URL, and signs in by itself: <Copied text={data.url} />
          </p>
          <Waiting key={path + of} namespace={namespace} id={id} />
        </>
      )}
      {step !== undefined && (
        <section>
          <h2>
            {names[step.client]} <small class="muted">{step.file}</small>
          </h2>
          {step.command !== undefined && <Code part="command" text={step.command} />}
          <Code part="config" text={step.content} />
          {step.link !== undefined && (
            <p>
              <a href={step.link} rel="noopener noreferrer">
                Open it in {names[step.client]}
              </a>
            </p>
          )}
        </section>
      )}
      <p class="muted">
        Claude on the web and ChatGPT come from the Internet: they reach this server only if it has a public address.
      </p>
    </Room>
  )
}

/** Connections that can be chosen here. Past it: the room of connections leads to each. */
const offeredMax = 100

function ConnectionChoice({ namespace, id }: { readonly namespace: string; readonly id: string }) {
  const path = namespace === '' ? null : `${pathOf('connect', namespace)}?limit=${offeredMax}`
  const { data } = useResource<ConnectionPage>(path)
  const listed = data?.connections.map(({ connectionId }) => connectionId) ?? []
  const offered = id === '' || listed.includes(id) ? listed : [id, ...listed]
  return (
    <Field
      name="id"
      label="Connection"
      value={id}
      options={['', ...offered]}
      nothing="all, through one URL"
      onInput={(one) => go(one === '' ? hrefWith({ namespace }, 'connect') : hrefOf('connect', namespace, one))}
    />
  )
}

/** Milliseconds after which the room says what usually is wrong. */
const patienceMs = 120_000

interface Arrived {
  readonly client: string
  readonly userId: string
  readonly time: string
  readonly namespace: string
  readonly connectionId: string
}

/** Waits for the first request of a client for this connection, or for any of the namespace. */
function Waiting({ namespace, id }: { readonly namespace: string; readonly id: string }) {
  const [arrived, setArrived] = useState<Arrived | undefined>()
  const [isLate, setLate] = useState(false)
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), patienceMs)
    return () => clearTimeout(timer)
  }, [])
  const isHere = (one: Omit<Arrived, 'client'>) => one.namespace === namespace && (id === '' || one.connectionId === id)
  useEvents<Arrived>('client', (one) => {
    if (isHere(one)) setArrived(one)
  })
  // A client that was here within ten minutes is no news of its own, and its calls are. The console calls by `tools`.
  useEvents<Omit<Arrived, 'client'> & { via: string }>('call', (one) => {
    if (one.via !== 'tools' && isHere(one)) setArrived((before) => before ?? { ...one, client: 'a client' })
  })
  return (
    <>
      <p data-part="waiting" data-state={arrived === undefined ? 'waiting' : 'arrived'} role="status">
        {arrived === undefined ? (
          'Waiting for its first request…'
        ) : (
          <>
            “<Foreign text={arrived.client} strong />” has arrived for “<Foreign text={arrived.userId} />
            ”, <When at={arrived.time} />.
          </>
        )}
      </p>
      {isLate && arrived === undefined && (
        <ul>
          <li>The client was not started again after its configuration was changed.</li>
          <li>It runs on another machine, from which this address is not reached.</li>
          <li>Somebody has not finished the sign-in in the browser.</li>
        </ul>
      )}
    </>
  )
}
