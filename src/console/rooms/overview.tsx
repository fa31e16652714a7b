/** What somebody reaches, what is unwell, and what was called lately. */

import type { Overview as OverviewBody } from '../../model/health.ts'
import { hrefOf, hrefWith } from '../address.ts'
import { useEvents } from '../events.ts'
import { base } from '../interface.ts'
import { CallCharts } from '../parts/call-charts.tsx'
import { HealthLine } from '../parts/health-line.tsx'
import { NewNamespaceLink } from '../parts/me.tsx'
import { State } from '../parts/parts.tsx'
import { Room } from '../parts/room.tsx'
import { useEveryMinute, useResource } from '../resource.ts'

const levels = [
  ['ok', 'well'],
  ['attention', 'need attention'],
  ['down', 'down'],
  ['unknown', 'not known yet'],
  ['off', 'off'],
] as const

export function Overview() {
  const overview = useResource<OverviewBody>('/overview')
  useEveryMinute(overview)
  useEvents('gap', overview.again)
  const { data } = overview
  return (
    <Room
      name="overview"
      title="Overview"
      resource={overview}
      request={{ path: '/overview', command: { words: ['status'], operands: [`${location.origin}${base}`] } }}
      isEmpty={data?.connections.total === 0}
    >
      {data?.connections.total === 0 && (
        <p>
          There are no connections yet. <NewNamespaceLink />, then{' '}
          <a href={hrefWith({ new: 'yes' }, 'connections')}>connect to a server by its URL</a>, or{' '}
          <a href={hrefOf('servers')}>find a registered one</a>.
        </p>
      )}
      {data !== undefined && (
        <>
          <section data-part="health">
            <h2>Connections</h2>
            <ul class="counts">
              {levels.map(([level, words]) =>
                data.connections[level] === 0 && level !== 'ok' ? null : (
                  <li key={level}>
                    <b>{data.connections[level]}</b>
                    <State level={level}>{words}</State>
                  </li>
                ),
              )}
            </ul>
            {!data.connections.complete && (
              <p class="muted">There are more: the first {data.connections.total} were counted.</p>
            )}
          </section>
          <section>
            <h2>Calls in the last hour</h2>
            {data.calls === null ? (
              <p class="muted">
                {data.store.ok
                  ? 'postern does not record calls here (--no-call-record).'
                  : 'The record of calls cannot be read.'}
              </p>
            ) : (
              <p>
                <a href={hrefWith({ outcome: 'ok' }, 'calls')}>{data.calls.ok} ok</a>, {data.calls.failed} failed,{' '}
                <a href={hrefWith({ outcome: 'refused' }, 'calls')}>{data.calls.refused} refused</a>;{' '}
                <a href={hrefOf('calls')}>all of them</a>
                {!data.calls.complete && <span class="muted"> and more before these</span>}
              </p>
            )}
            {data.calls !== null && <CallCharts />}
            {data.sampleTraffic === true && (
              <p class="muted">Sample traffic is on: this server calls mocks of the sample once a second.</p>
            )}
          </section>
          {data.attention.length > 0 && <Attention {...data} />}
          <section>
            <h2>Server</h2>
            <p>
              <State level={data.store.ok ? 'ok' : 'down'}>
                {data.store.ok ? 'the store works' : (data.store.problem ?? 'the store cannot be used')}
              </State>
              {data.store.freeBytes !== undefined && (
                <span class="muted"> · {Math.round(data.store.freeBytes / 2 ** 30)} GB free on its disk</span>
              )}
              <span class="muted"> · version {data.version}</span>
            </p>
          </section>
        </>
      )}
    </Room>
  )
}

function Attention({ attention, connections }: OverviewBody) {
  const more = connections.attention + connections.down - attention.length
  return (
    <section data-part="attention">
      <h2>Needs attention</h2>
      <ul class="rows pairs">
        {attention.map((one) => (
          <li
            key={`${one.namespace}/${one.connectionId}`}
            data-id={`${one.namespace}/${one.connectionId}`}
            data-level={one.level}
          >
            <a href={hrefOf('connections', one.namespace, one.connectionId)}>
              {one.namespace}/{one.connectionId}
            </a>
            <HealthLine namespace={one.namespace} health={one} />
          </li>
        ))}
      </ul>
      {more > 0 && (
        <p class="muted">
          {more} more are listed under <a href={hrefWith({ level: 'attention' }, 'connections')}>Connections</a>, by
          namespace.
        </p>
      )}
    </section>
  )
}
