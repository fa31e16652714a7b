/** An organization: its members with their roles, and its API keys. */

import type { ApiKeyList, OrganizationDetail } from '../../model/organization.ts'
import { address, go, hrefOf, pathOf } from '../address.ts'
import { ask } from '../interface.ts'
import { ApiKeys } from '../parts/api-keys.tsx'
import { DangerousAction } from '../parts/dialog.tsx'
import { Field, Form, useDraft } from '../parts/field.tsx'
import { Foreign } from '../parts/foreign.tsx'
import { useMe } from '../parts/me.tsx'
import { Action } from '../parts/parts.tsx'
import { AsText } from '../parts/request.tsx'
import { Room } from '../parts/room.tsx'
import { SomeRows } from '../parts/some-rows.tsx'
import { useAction, useResource } from '../resource.ts'

const roles = ['member', 'admin', 'owner']

export function Organization() {
  const [, id = ''] = address.value.path
  const path = pathOf('organizations', id)
  const organization = useResource<OrganizationDetail>(path)
  const me = useMe()
  const role = me.data?.organizations.find(({ organizationId }) => organizationId === id)?.role
  const isManager = me.data?.operator === true || role === 'owner' || role === 'admin'
  const isOwner = me.data?.operator === true || role === 'owner'
  /** Why the caller may not give a role, or take it away. */
  const reasonFor = (other: string) => {
    if (other === 'owner') return isOwner ? undefined : 'Only an owner of the organization may do this'
    return isManager ? undefined : 'Only an owner or admin of the organization may do this'
  }
  const { data } = organization
  return (
    <Room
      name="organization"
      title={data?.name ?? id}
      id={id}
      resource={organization}
      request={{ path, command: { words: ['org', 'get'], operands: [id] } }}
      actions={
        data !== undefined && (
          <DangerousAction
            act="Delete"
            of={id}
            typed={id}
            reason={reasonFor('owner')}
            onAct={() => ask('DELETE', path)}
            onDone={() => go(hrefOf('namespaces'), `${id} was deleted.`)}
          >
            <p>Its members lose their roles, and its API keys and all tokens of them end at once.</p>
          </DangerousAction>
        )
      }
    >
      <h2>Members</h2>
      <SomeRows
        part="rows"
        items={data?.members ?? []}
        row={(member) => (
          <li key={member.userId} data-id={member.userId} class="spread">
            <span>
              <Foreign text={member.userId} /> <span class="muted">{member.role}</span>
            </span>
            <DangerousAction
              act="Remove"
              of={`“${member.userId}”`}
              isSmall
              reason={reasonFor(member.role)}
              onAct={() => ask('DELETE', path + pathOf('members', member.userId))}
              onDone={organization.again}
            >
              <p>
                <Foreign text={member.userId} /> loses the namespaces of {id} at once, as do all tokens that act for it.
              </p>
            </DangerousAction>
          </li>
        )}
      />
      <NewMember {...{ path, reasonFor }} onSaved={organization.again} />
      {isManager ? (
        <OrganizationKeys path={path} />
      ) : (
        <p class="muted">API keys of the organization are shown to its owners and admins.</p>
      )}
    </Room>
  )
}

interface NewMemberProps {
  readonly path: string
  reasonFor(role: string): string | undefined
  readonly onSaved: () => void
}

function NewMember({ path, reasonFor, onSaved }: NewMemberProps) {
  const [userId, setUserId] = useDraft(`${path} member`)
  const [role, setRole] = useDraft(`${path} role`, 'member')
  const save = useAction(async () => {
    await ask('PUT', path + pathOf('members', userId), { body: { role } })
    setUserId('')
    onSaved()
  })
  const reason = reasonFor(role)
  return (
    <Form title="Add a member, or change a role" onSend={() => void (reason === undefined && save.run())}>
      <Field name="userId" label="User" value={userId} onInput={setUserId} isRequired error={save.error?.message} />
      <Field name="role" label="Role" value={role} onInput={setRole} options={roles} />
      <Action name="save" type="submit" isBusy={save.isBusy} reason={reason} label="Save" />
    </Form>
  )
}

function OrganizationKeys({ path }: { readonly path: string }) {
  const keys = useResource<ApiKeyList>(`${path}/api-keys`)
  return (
    <section>
      <h2>API keys of the organization</h2>
      <ApiKeys path={`${path}/api-keys`} keys={keys} />
      <AsText request={{ path: `${path}/api-keys` }} />
    </section>
  )
}
