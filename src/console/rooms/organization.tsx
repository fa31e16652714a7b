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
  const reason = isManager ? undefined : 'Only an owner or admin of the organization may do this'
  const ownersOnly = 'Only an owner of the organization may do this'
  const [userId, setUserId] = useDraft(`${id} member`)
  const [newRole, setNewRole] = useDraft(`${id} role`, 'member')
  const add = useAction(async () => {
    await ask('PUT', path + pathOf('members', userId), { body: { role: newRole } })
    setUserId('')
    organization.again()
  })
  const addReason = newRole === 'owner' && !isOwner ? ownersOnly : reason
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
            reason={isOwner ? undefined : ownersOnly}
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
              reason={member.role === 'owner' && !isOwner ? ownersOnly : reason}
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
      <Form title="Add a member, or change a role" onSend={() => void (addReason === undefined && add.run())}>
        <Field name="userId" label="User" value={userId} onInput={setUserId} isRequired error={add.error?.message} />
        <Field name="role" label="Role" value={newRole} onInput={setNewRole} options={roles} />
        <Action name="save" type="submit" isBusy={add.isBusy} reason={addReason} label="Save" />
      </Form>
      {isManager ? (
        <OrganizationKeys path={path} />
      ) : (
        <p class="muted">API keys of the organization are shown to its owners and admins.</p>
      )}
    </Room>
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
