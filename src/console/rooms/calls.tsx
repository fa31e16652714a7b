/** Recorded calls and refusals, and the whole story of one. */

import { useEffect, useRef, useState } from 'preact/hooks'
import type { CallStory } from '../../model/health.ts'
import { address, filter, hrefOf } from '../address.ts'
import { useEvents } from '../events.ts'
import { CallCharts } from '../parts/call-charts.tsx'
import { Foreign } from '../parts/foreign.tsx'
import { NamespaceChoice, useMe } from '../parts/me.tsx'
import { Action, Copied, Field, HealthLine, Room, State, When } from '../parts/parts.tsx'
import { usePages, useResource } from '../resource.ts'

interface ShownCall {
  readonly requestId: string
  readonly time: string
  readonly userId: string
  readonly namespace: string
  readonly connectionId: string
  readonly tool: string
  readonly outcome: string
  readonly constraint?: string
  readonly code?: string | number
  readonly ms: number
}

const outcomes = ['', 'ok', 'tool_error', 'rpc_error', 'refused', 'upstream_error', 'timeout', 'cancelled']
const levelOf = (outcome: string) => (outcome === 'ok' ? 'ok' : outcome === 'refused' ? 'attention' : 'down')

/** Calls that came while somebody looked. Past it: the first of them are let go. */
const liveMax = 200
/** Milliseconds between two paintings of what came. */
const paintMs = 250

/** Calls as they happen, the newest first, painted at most four times a second and while somebody looks. */
function useLive(isOn: boolean, namespace: string) {
  const [calls, setCalls] = useState<readonly ShownCall[]>([])
  const [hasGap, setGap] = useState(false)
  const waiting = useRef<ShownCall[]>([])
  useEvents<ShownCall>('call', (call) => {
    if (isOn && (namespace === '' || call.namespace === namespace)) waiting.current.push(call)
  })
  useEvents('gap', () => setGap(true))
  useEffect(() => {
    const timer = setInterval(() => {
      const came = waiting.current
      if (came.length === 0 || document.hidden) return
      waiting.current = []
      setCalls((before) => [...came.reverse(), ...before].slice(0, liveMax))
    }, paintMs)
    return () => clearInterval(timer)
  }, [])
  useEffect(() => setCalls([]), [namespace])
  return { calls, hasGap, clear: () => setGap(false) }
}

export function Calls() {
  const me = useMe()
  const { query } = address.value
  const of = (name: string) => query.get(name) ?? ''
  const names = ['namespace', 'tool', 'outcome']
  const wanted = names.flatMap((name) => (of(name) === '' ? [] : [`&${name}=${encodeURIComponent(of(name))}`])).join('')
  const list = usePages<{ calls: ShownCall[]; nextCursor: string | null }, ShownCall>(
    `/calls?limit=50${wanted}`,
    ({ calls }) => calls,
  )
  const [isLive, setLive] = useState(true)
  const live = useLive(isLive, of('namespace'))
  const isWanted = (call: ShownCall) =>
    (of('tool') === '' || call.tool === of('tool')) && (of('outcome') === '' || call.outcome === of('outcome'))
  const listed = new Set(list.items.map(({ requestId }) => requestId))
  const calls = [...live.calls.filter((call) => isWanted(call) && !listed.has(call.requestId)), ...list.items]
  return (
    <Room
      name="calls"
      title="Calls"
      resource={{ ...list, isLoading: list.isLoading && list.items.length === 0 }}
      isEmpty={!list.isLoading && calls.length === 0}
      actions={
        <>
          <span data-part="live" data-state={isLive ? 'live' : 'paused'} class="muted">
            {isLive ? 'live' : 'paused'}
          </span>
          <Action name="pause" onClick={() => setLive(!isLive)}>
            {isLive ? 'Pause' : 'Resume'}
          </Action>
        </>
      }
    >
      <div class="filters">
        <NamespaceChoice me={me.data} withAny value={of('namespace')} onChange={(namespace) => filter({ namespace })} />
        <Field name="q" label="Tool" value={of('tool')} onInput={(tool) => filter({ tool })} hint="its exact name" />
        <Field
          name="outcome"
          label="Outcome"
          value={of('outcome')}
          onInput={(outcome) => filter({ outcome })}
          options={outcomes}
        />
      </div>
      <CallCharts wanted={of('namespace') === '' ? '' : `&namespace=${encodeURIComponent(of('namespace'))}`} />
      {live.hasGap && (
        <p role="status">
          Some calls are missing here.{' '}
          <Action
            name="retry"
            onClick={() => {
              live.clear()
              list.again()
            }}
          >
            Read again
          </Action>
        </p>
      )}
      {calls.length === 0 ? (
        <p>No call is recorded that fits. Calls appear here as they are made.</p>
      ) : (
        <table>
          <thead>
            <tr>
              <th>When</th>
              <th>Outcome</th>
              <th>Tool</th>
              <th>Connection</th>
              <th>User</th>
              <th class="number">ms</th>
            </tr>
          </thead>
          <tbody data-part="rows" data-end={!list.hasMore}>
            {calls.map((call) => (
              <tr key={call.requestId} data-id={call.requestId} data-outcome={call.outcome}>
                <td>
                  <a href={hrefOf('calls', call.requestId)}>
                    <When at={call.time} />
                  </a>
                </td>
                <td>
                  <State level={levelOf(call.outcome)}>{call.outcome}</State>
                </td>
                <td>
                  <Foreign text={call.tool} code />
                </td>
                <td>
                  {call.namespace}/{call.connectionId}
                </td>
                <td>
                  <Foreign text={call.userId} />
                </td>
                <td class="number">{call.ms}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {list.hasMore && (
        <p>
          <Action name="more" onClick={list.more}>
            Earlier calls
          </Action>
        </p>
      )}
    </Room>
  )
}

export function Call() {
  const [, id = ''] = address.value.path
  const story = useResource<CallStory>(`/calls/${encodeURIComponent(id)}`)
  const call = story.data?.call as ShownCall | undefined
  const connection = story.data?.connection
  return (
    <Room name="call" title={call === undefined ? 'Call' : `Call of ${call.tool}`} id={id} resource={story}>
      {call !== undefined && (
        <>
          <p>
            <State level={levelOf(call.outcome)}>{call.outcome}</State>
            {call.code !== undefined && <span class="muted"> {call.code}</span>} <When at={call.time} />, {call.ms} ms
          </p>
          {call.outcome === 'refused' && (
            <p data-part="words">
              {call.constraint === undefined ? (
                <>It never reached the server: {call.code}.</>
              ) : (
                <>
                  The token does not allow it: <code>{call.constraint}</code>.{' '}
                  <a
                    href={`${hrefOf('tokens')}?namespace=${call.namespace}&connection=${call.connectionId}&tool=${encodeURIComponent(call.tool)}`}
                  >
                    See what a policy must allow
                  </a>
                </>
              )}
            </p>
          )}
          <dl>
            <dt>Tool</dt>
            <dd>
              <Foreign text={call.tool} code />
            </dd>
            <dt>Connection</dt>
            <dd>
              <a href={hrefOf('connections', call.namespace, call.connectionId)}>
                {call.namespace}/{call.connectionId}
              </a>{' '}
              {connection && <HealthLine health={connection} />}
            </dd>
            <dt>User</dt>
            <dd>{call.userId}</dd>
            <dt>Request</dt>
            <dd>
              <Copied text={call.requestId} />
            </dd>
          </dl>
          {(story.data?.audit.length ?? 0) > 0 && (
            <section>
              <h2>Audit log</h2>
              <pre>{story.data?.audit.map((entry) => JSON.stringify(entry)).join('\n')}</pre>
            </section>
          )}
        </>
      )}
    </Room>
  )
}
