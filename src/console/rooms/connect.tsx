/** Connects a client to a connection: its URL, what each client needs, and whether it has arrived. */

import { useEffect, useState } from 'preact/hooks'
import { address, filter, go, hrefOf } from '../address.ts'
import { useEvents } from '../events.ts'
import { Field } from '../parts/field.tsx'
import { NamespaceChoice, useMe } from '../parts/me.tsx'
import { Action, Copied, When } from '../parts/parts.tsx'
import { Room } from '../parts/room.tsx'

/** Milliseconds after which the room says what usually is wrong. */
const patienceMs = 120_000

interface Arrived {
  readonly client: string
  readonly userId: string
  readonly time: string
  readonly namespace: string
  readonly connectionId: string
}

/** The first request of a client for this connection, once there is one. */
function useArrival(namespace: string, id: string) {
  const [arrived, setArrived] = useState<Arrived | undefined>()
  const [isLate, setLate] = useState(false)
  useEffect(() => {
    setArrived(undefined)
    setLate(false)
    const timer = setTimeout(() => setLate(true), patienceMs)
    return () => clearTimeout(timer)
  }, [namespace, id])
  useEvents<Arrived>('client', (one) => {
    if (one.namespace === namespace && one.connectionId === id) setArrived(one)
  })
  return { arrived, isLate }
}

const json = (value: object) => JSON.stringify(value, null, 2)

/** What each client is given, for an endpoint of this name. */
function recipesOf(name: string, url: string): readonly (readonly [client: string, how: string, text: string])[] {
  return [
    ['Claude Code', 'in a terminal', `claude mcp add --transport http ${name} ${url}`],
    ['Cursor', '~/.cursor/mcp.json', json({ mcpServers: { [name]: { url } } })],
    ['VS Code', '.vscode/mcp.json', json({ servers: { [name]: { type: 'http', url } } })],
    ['opencode', 'opencode.json', json({ mcp: { [name]: { type: 'remote', url, enabled: true } } })],
    ['mcp-remote', 'for clients that start a program', `npx mcp-remote ${url}`],
    ['any other', 'mcp.json', json({ mcpServers: { [name]: { type: 'http', url } } })],
  ]
}

export function Connect() {
  const me = useMe()
  const [, named, id = ''] = address.value.path
  const { query } = address.value
  const namespace = named ?? query.get('namespace') ?? me.data?.namespaces[0]?.name ?? ''
  const [typed, setTyped] = useState('')
  const { arrived, isLate } = useArrival(namespace, id)
  const url = `${me.data?.baseUrl.replace(/\/$/, '') ?? ''}/connect/${namespace}/${id}/mcp`
  return (
    <Room name="connect" title="Connect a client" {...(id !== '' && { id: `${namespace}/${id}` })} resource={me}>
      {id === '' ? (
        <form
          class="panel"
          onSubmit={(event) => {
            event.preventDefault()
            go(hrefOf('connect', namespace, typed))
          }}
        >
          <NamespaceChoice me={me.data} value={namespace} onChange={(value) => filter({ namespace: value })} />
          <Field name="id" label="Id of the connection" value={typed} onInput={setTyped} isRequired />
          <Action name="open" type="submit" isMain>
            Show how
          </Action>
        </form>
      ) : (
        <>
          <p>
            Give your client this URL, and sign in when it asks: <Copied text={url} />
          </p>
          <p data-part="waiting" data-state={arrived === undefined ? 'waiting' : 'arrived'} role="status">
            {arrived === undefined ? (
              'Waiting for its first request…'
            ) : (
              <>
                <b>{arrived.client}</b> has arrived for {arrived.userId}, <When at={arrived.time} />.
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
          {recipesOf(id, url).map(([client, how, text]) => (
            <section key={client}>
              <h2>
                {client} <small class="muted">{how}</small>
              </h2>
              <pre>{text}</pre>
            </section>
          ))}
          <p class="muted">
            Claude on the web and ChatGPT come from the Internet: they reach this server only if it has a public
            address.
          </p>
        </>
      )}
    </Room>
  )
}
