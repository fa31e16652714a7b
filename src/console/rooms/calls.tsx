/** Recorded calls and refusals, and the whole story of one. */

import { useEffect, useState } from 'preact/hooks'
import type { CallStory } from '../../model/health.ts'
import type { CallPage } from '../../model/recorded-call.ts'
import { address, filter, filterOf, filtersOf, hrefOf, hrefWith, parametersOf, pathOf } from '../address.ts'
import { hasArrivedSince, isStreamOpen, useBursts } from '../events.ts'
import { ask, session } from '../interface.ts'
import { after, listed, type Pages, usePages } from '../pages.ts'
import { CallCharts } from '../parts/call-charts.tsx'
import { DangerousAction } from '../parts/dialog.tsx'
import { Filter } from '../parts/field.tsx'
import { Foreign } from '../parts/foreign.tsx'
import { HealthLine } from '../parts/health-line.tsx'
import { NamespaceChoice, useMe } from '../parts/me.tsx'
import { Action, Copied, Facts, State, When, Wrong } from '../parts/parts.tsx'
import { policyText } from '../parts/policy-form.tsx'
import { Room } from '../parts/room.tsx'
import { type Column, Gap, Table } from '../parts/table.tsx'
import { useAction, useResource } from '../resource.ts'

type CallsBody = typeof CallPage.static
type ShownCall = CallsBody['calls'][number]

const outcomes = ['', 'ok', 'tool_error', 'rpc_error', 'refused', 'upstream_error', 'timeout', 'cancelled']
const wordsOf = (outcome: string) => outcome.replace('rpc_', 'MCP ').replace('_', ' ')
const levelOf = (outcome: string) => (outcome === 'ok' ? 'ok' : outcome === 'refused' ? 'attention' : 'down')

/** Calls that came while somebody looked. Past it: the first of them are let go, and a line says so. */
const liveMax = 100

/**
 * Calls as they happen, the newest first, painted at most four times a second and while somebody looks. A list that is
 * read for other filters has what came until then; one to which somebody comes back may lack some.
 */
function useLive(isOn: boolean, namespace: string, pages: Pages<ShownCall>) {
  const [calls, setCalls] = useState<readonly ShownCall[]>([])
  useBursts<ShownCall>('call', {
    isWanted(call) {
      const isOfRoom = namespace === '' || call.namespace === namespace
      if (isOfRoom && !isOn) pages.miss()
      return isOfRoom && isOn
    },
    hear(came) {
      if (calls.length + came.length > liveMax) pages.miss()
      setCalls((before) => [...came.toReversed(), ...before].slice(0, liveMax))
    },
    most: liveMax,
    lose: () => pages.miss(),
  })
  useEffect(() => {
    setCalls([])
    if (pages.isBegun && hasArrivedSince('call', pages.eventsBefore)) pages.miss()
  }, [pages])
  const open = isStreamOpen.value ? 'live' : 'off'
  return { calls, state: isOn ? open : 'paused' } as const
}

const liveWords = { live: '● live', off: 'not connected, trying again', paused: 'paused' }

const columns: readonly Column<ShownCall>[] = [
  {
    title: 'When',
    width: 'narrow',
    cell: ({ requestId, time, tool }) => (
      <a href={hrefWith({ time, tool }, 'calls', requestId)}>
        <When at={time} />
      </a>
    ),
  },
  {
    title: 'Outcome',
    width: 'medium',
    cell: ({ outcome, constraint }) => (
      <>
        <State level={levelOf(outcome)}>{wordsOf(outcome)}</State>
        <div class="clipped">
          {constraint !== undefined && <Foreign as="span" class="muted" text={constraint} code />}
        </div>
      </>
    ),
  },
  { title: 'Tool', isClipped: true, cell: ({ tool }) => <Foreign text={tool} code /> },
  { title: 'Connection', isClipped: true, cell: ({ namespace, connectionId }) => `${namespace}/${connectionId}` },
  { title: 'User', width: 'narrow', isClipped: true, cell: ({ userId }) => <Foreign text={userId} /> },
  { title: 'Time', width: 'number', cell: ({ ms }) => `${ms} ms` },
]

/** Pages of calls that are exported. Past it: the command goes on. */
const exportedPagesMax = 100

/** Saves the newest calls that fit as JSON lines. */
async function exportCalls(wanted: string): Promise<void> {
  const lines: string[] = []
  let cursor: string | null = null
  for (let page = 0; page < exportedPagesMax && (page === 0 || cursor !== null); page += 1) {
    const body: CallsBody = await ask('GET', `/calls?limit=100${wanted}${after(cursor)}`)
    lines.push(...body.calls.map((call) => `${JSON.stringify(call)}\n`))
    cursor = body.nextCursor
  }
  const link = document.createElement('a')
  link.href = URL.createObjectURL(new Blob(lines, { type: 'application/x-ndjson' }))
  link.download = 'calls.jsonl'
  link.click()
  URL.revokeObjectURL(link.href)
}

export function Calls() {
  const me = useMe()
  // The filters of the address are those of the interface; those without a field are shown beside them.
  const names = ['namespace', 'connection', 'tool', 'outcome', 'user', 'token', 'via', 'since', 'until']
  const given = filtersOf(names)
  const { since, until, ...timeless } = given
  const wanted = parametersOf(given)
  const others = names.slice(4).filter((name) => name in given)
  const path = `/calls?limit=100${wanted}`
  const pages = usePages(path, listed<ShownCall>('calls', path))
  const [isLive, setLive] = useState(true)
  // The server alone knows whether a call that arrives has this token, and so on.
  const isDecidedHere = others.every((name) => name === 'user')
  const live = useLive(isLive && isDecidedHere, filterOf('namespace'), pages)
  const isWanted = (call: ShownCall) =>
    isDecidedHere &&
    Object.entries({ tool: call.tool, outcome: call.outcome, connection: call.connectionId, user: call.userId }).every(
      ([name, its]) => (given[name] ?? its) === its,
    )
  // The command has no option for these.
  const hasNoCommand = ['via', 'since', 'until'].some((name) => name in given)
  const save = useAction(() => exportCalls(wanted))
  // A call that came while the first page was read is in both. A client may give calls one request id.
  const idOf = (call?: ShownCall) => call && `${call.requestId} ${call.time} ${call.tool}`
  const read = new Set(Array.from({ length: 100 }, (_, index) => idOf(pages.at(index))))
  const came = live.calls.filter((call) => isWanted(call) && !read.has(idOf(call)))
  const isEmpty = came.length === 0 && pages.isEmpty
  return (
    <Room
      name="calls"
      title="Calls"
      resource={pages}
      request={{ path, command: hasNoCommand ? undefined : { words: ['calls'], options: given } }}
      isEmpty={isEmpty}
      actions={
        <>
          <span data-part="live" data-state={live.state} class="muted">
            {isDecidedHere ? liveWords[live.state] : 'not live with these filters'}
          </span>
          <Action name="export" does={save} label="Export" />
          {isDecidedHere && (
            <Action name="pause" onClick={() => setLive(!isLive)} label={isLive ? 'Pause' : 'Resume'} />
          )}
        </>
      }
      filters={
        <>
          <NamespaceChoice
            me={me.data}
            withAny
            value={filterOf('namespace')}
            onChange={(namespace) => filter({ namespace })}
          />
          <Filter of="connection" label="Connection" placeholder="its id" />
          <Filter of="tool" name="q" label="Tool" placeholder="its exact name" />
          <Filter of="outcome" label="Outcome" options={outcomes} names={outcomes.map(wordsOf)} />
          {others.map((name) => (
            <Action key={name} name="remove" for={name} isSmall onClick={() => filter({ [name]: '' })}>
              {name}: <Foreign text={filterOf(name)} /> ×
            </Action>
          ))}
        </>
      }
    >
      {/* The charts have a time of their own. */}
      <CallCharts wanted={parametersOf(timeless)} />
      {live.state !== 'paused' && <Gap news="calls" pages={pages} />}
      <Wrong error={save.error} />
      {isEmpty ? (
        <p>No call is recorded that fits. Calls appear here as they are made.</p>
      ) : (
        <Table
          label="Calls"
          columns={columns}
          pages={pages}
          before={came}
          hooks={({ requestId, outcome }) => ({ 'data-id': requestId, 'data-outcome': outcome })}
        />
      )}
    </Room>
  )
}

/** A call as the composer's address has it. */
const requestOf = ({ namespace, connectionId, tool }: ShownCall) => ({ namespace, connection: connectionId, tool })

/** The same with the narrowest policy for the call. */
function allowing(call: ShownCall) {
  const { namespace, connectionId, tool } = call
  const pattern = `^${tool.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')}$`
  const policy = [
    { operations: 'execute', namespaces: namespace, metadata: { connectionId }, ttl: '10m' },
    { rpcReqMatch: { 'params.name': pattern } },
  ]
  return { policy: policyText(policy), ...requestOf(call) }
}

/** The words for a rule, by its place in a policy: the record keeps no policies, which may be confidential. */
function wordsOfRule(place: string): string {
  const [, index = '', field = ''] = /^policy\[(\d+)\]\.(?:rpcReqMatch\.)?(.+)$/.exec(place) ?? []
  if (field === '') return 'A rule of its token does not allow it.'
  const matched = field === 'params.name' ? 'tools whose names match' : `MCP requests whose ${field} matches`
  const allowed = place.includes('.rpcReqMatch.') ? `${matched} its pattern` : `some ${field}`
  return `Constraint ${Number(index) + 1} of the token’s policy allows only ${allowed}.`
}

function UsedToken({ id, userId }: { readonly id: string; readonly userId: string }) {
  const [isRevoked, setRevoked] = useState(false)
  const { userId: own, operator = false } = session.value ?? {}
  return (
    <>
      <code>{id}</code> {isRevoked && <span role="status">is revoked</span>}{' '}
      <DangerousAction
        act="Revoke"
        of={id}
        isSmall
        reason={own === userId || operator ? undefined : 'Only its user, or an operator, may revoke it'}
        onAct={() => ask('POST', '/tokens/revoke', { body: { tokenId: id } })}
        onDone={() => setRevoked(true)}
      >
        <p>The token ends at once, with every token minted with it.</p>
      </DangerousAction>
    </>
  )
}

/** Why a call was refused, and what shows the rule whole. */
function Refusal({ call }: { readonly call: ShownCall }) {
  const { constraint } = call
  if (constraint === undefined)
    return <p data-part="words">It never reached the server: {JSON.stringify(call.code)}.</p>
  return (
    <p data-part="words">
      <Foreign text={wordsOfRule(constraint)} /> The rule is <Foreign text={constraint} code />. To read it whole,{' '}
      <a href={hrefWith({ ...requestOf(call), subject: 'token' }, 'tokens')}>explain the token</a>, or{' '}
      <a href={hrefWith(allowing(call), 'tokens')}>see a policy that allows this call alone</a>.
    </p>
  )
}

export function Call() {
  const [, id = ''] = address.value.path
  // Its client may have chosen the id: the time and the tool say which call of it.
  const query = address.value.query.toString()
  const path = `${pathOf('calls', id)}${query === '' ? '' : `?${query}`}`
  const story = useResource<CallStory>(path)
  const call = story.data?.call as ShownCall | undefined
  const connection = story.data?.connection
  return (
    <Room
      name="call"
      title={call === undefined ? 'Call' : `Call of “${call.tool}”`}
      id={id}
      resource={story}
      request={{ path }}
    >
      {call !== undefined && (
        <>
          <p data-outcome={call.outcome}>
            <State level={levelOf(call.outcome)}>{wordsOf(call.outcome)}</State>
            {call.code !== undefined && <span class="muted"> {JSON.stringify(call.code)}</span>} <When at={call.time} />
            , {call.ms} ms
          </p>
          {call.outcome === 'refused' && <Refusal call={call} />}
          <Facts
            of={{
              Tool: <Foreign text={call.tool} code />,
              Connection: (
                <>
                  <a href={hrefOf('connections', call.namespace, call.connectionId)}>
                    {call.namespace}/{call.connectionId}
                  </a>{' '}
                  {connection && <HealthLine namespace={call.namespace} health={connection} />}
                </>
              ),
              User: <Foreign text={call.userId} />,
              'API key': call.keyId,
              Token: call.jti === undefined ? 'none: the key itself' : <UsedToken id={call.jti} userId={call.userId} />,
              Request: <Copied text={call.requestId} />,
            }}
          />
          {(story.data?.audit.length ?? 0) > 0 && (
            <section>
              <h2>Audit log</h2>
              <Foreign as="pre" text={story.data?.audit.map((entry) => JSON.stringify(entry)).join('\n') ?? ''} />
            </section>
          )}
        </>
      )}
    </Room>
  )
}
