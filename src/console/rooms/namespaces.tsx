/** Namespaces and organizations, and one namespace with its settings. */

import type { NamespaceDetail } from '../../model/organization.ts'
import { address, filterOf, go, hrefOf, hrefWith, parametersOf, pathOf } from '../address.ts'
import { ask } from '../interface.ts'
import { numbered, usePages } from '../pages.ts'
import { DangerousAction } from '../parts/dialog.tsx'
import { Field, Filter, Form, useDraft } from '../parts/field.tsx'
import { Foreign } from '../parts/foreign.tsx'
import { useMe } from '../parts/me.tsx'
import { Action, Facts, NewAction, When, Wrong } from '../parts/parts.tsx'
import { Room } from '../parts/room.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { useAction, useResource } from '../resource.ts'

type Listed = Pick<NamespaceDetail, 'name'>

const columns: readonly Column<Listed>[] = [
  { title: 'Namespace', cell: ({ name }) => <a href={hrefOf('namespaces', name)}>{name}</a> },
  {
    title: 'Connections',
    cell: ({ name }) => <a href={hrefWith({ namespace: name }, 'connections')}>show them</a>,
  },
]

const listPath = (q: string, page: string) => `/namespaces?page=${page}${parametersOf({ q })}`

export function Namespaces() {
  const me = useMe()
  const q = filterOf('q')
  const read = numbered<Listed>('namespaces', (page) => listPath(q, page))
  const pages = usePages(`namespaces ${q}`, read)
  return (
    <Room
      name="namespaces"
      title="Namespaces"
      resource={pages}
      request={{ path: listPath(q, '1'), command: q === '' ? { words: ['namespace', 'list'] } : undefined }}
      actions={<NewAction isMain label="New namespace" />}
      filters={<Filter of="q" label="Begins with" />}
    >
      {filterOf('new') !== '' && <NewNamespace />}
      {pages.isEmpty ? (
        <p>There are no namespaces here yet. Connections are made in one: begin with it.</p>
      ) : (
        <Table label="Namespaces" columns={columns} pages={pages} hooks={({ name }) => ({ 'data-id': name })} />
      )}
      {(me.data?.organizations.length ?? 0) > 0 && (
        <section>
          <h2>Your organizations</h2>
          <ul class="rows">
            {me.data?.organizations.map(({ organizationId, role }) => (
              <li key={organizationId} data-id={organizationId}>
                <a href={hrefOf('organizations', organizationId)}>{organizationId}</a> <span class="muted">{role}</span>
              </li>
            ))}
          </ul>
        </section>
      )}
    </Room>
  )
}

function NewNamespace() {
  const [name, setName] = useDraft('namespace')
  const create = useAction(async () => {
    await ask('PUT', pathOf('namespaces', name))
    setName('')
    go(hrefOf('namespaces', name))
  })
  return (
    <Form title="New namespace" onSend={() => void create.run()}>
      <Field
        name="name"
        label="Name"
        value={name}
        onInput={setName}
        isRequired
        hint="3 to 39 of a–z, 0–9 and -"
        wrong={/^[a-z0-9][a-z0-9-]{1,37}[a-z0-9]$/.test(name) ? undefined : 'must be 3 to 39 of a–z, 0–9 and -'}
        error={create.error?.message}
      />
      <Action name="save" type="submit" isBusy={create.isBusy} label="Create" />
    </Form>
  )
}

export function Namespace() {
  const [, name = ''] = address.value.path
  const path = pathOf('namespaces', name)
  const namespace = useResource<NamespaceDetail>(path)
  const me = useMe()
  const leads = me.data?.namespaces.find((one) => one.name === name)?.leads === true
  const reason = leads
    ? undefined
    : 'Only the user who owns this namespace, or an owner or admin of its organization, may do this'
  const { data } = namespace
  return (
    <Room
      name="namespace"
      title={name}
      id={name}
      resource={namespace}
      request={{ path }}
      actions={
        data !== undefined && (
          <DangerousAction
            act="Delete"
            of={name}
            typed={name}
            reason={reason}
            onAct={() => ask('DELETE', path)}
            onDone={() => go(hrefOf('namespaces'), `${name} was deleted.`)}
          >
            <p>Its connections and views are deleted with it, and their clients lose their tools.</p>
          </DangerousAction>
        )
      }
    >
      <p>
        <a href={hrefWith({ namespace: name }, 'connections')}>Its connections</a>,{' '}
        <a href={hrefWith({ namespace: name }, 'calls')}>its calls</a>
      </p>
      {data !== undefined && (
        <>
          <Facts of={{ Created: <When at={data.createdAt} />, Title: <Foreign text={data.title ?? 'none'} /> }} />
          <Settings path={path} namespace={data} reason={reason} onSaved={namespace.again} />
        </>
      )}
    </Room>
  )
}

interface SettingsProps {
  readonly path: string
  readonly namespace: NamespaceDetail
  readonly reason: string | undefined
  readonly onSaved: () => void
}

const texts = [
  ['title', 'Title'],
  ['description', 'Description'],
  ['instructions', 'Instructions for clients'],
] as const

function Settings({ path, namespace, reason, onSaved }: SettingsProps) {
  const [pins, setPins] = useDraft(`${path} pins`, namespace.pins)
  const first = Object.fromEntries(texts.map(([name]) => [name, namespace[name] ?? '']))
  const [draft, setDraft] = useDraft(`${path} texts`, JSON.stringify(first))
  const typed: Record<string, string> = JSON.parse(draft)
  const save = useAction(async () => {
    const written = texts.map(([name]) => [name, typed[name] === '' ? null : typed[name]])
    await ask('PATCH', path, { body: { pins, ...Object.fromEntries(written) } })
    onSaved()
  })
  return (
    <Form title="Settings" onSend={() => void (reason === undefined && save.run())}>
      <Field
        name="pins"
        label="When definitions of tools change"
        value={pins}
        onInput={setPins}
        options={['off', 'warn', 'block']}
        names={['do nothing', 'warn', 'block them until somebody accepts them']}
      />
      {texts.map(([name, label]) => (
        <Field
          key={name}
          name={name}
          label={label}
          value={typed[name] ?? ''}
          type={name === 'title' ? 'text' : 'lines'}
          onInput={(text) => setDraft(JSON.stringify({ ...typed, [name]: text }))}
        />
      ))}
      <Action name="save" type="submit" isBusy={save.isBusy} reason={reason} label="Save" />
      <Wrong error={save.error} />
      {save.isDone && <p role="status">Saved.</p>}
    </Form>
  )
}
