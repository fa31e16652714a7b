/** An organization: its members with their roles, and its API keys. */

import type { ApiKeyList, OrganizationDetail } from '../../model/organization.ts'
import { address, pathOf } from '../address.ts'
import { ask } from '../interface.ts'
import { ApiKeys } from '../parts/api-keys.tsx'
import { DangerousAction } from '../parts/dialog.tsx'
import { Field, Form, useDraft } from '../parts/field.tsx'
import { Foreign } from '../parts/foreign.tsx'
import { useMe } from '../parts/me.tsx'
import { Action } from '../parts/parts.tsx'
import { AsText } from '../parts/request.tsx'
import { Room } from '../parts/room.tsx'
import { rowsMax, SomeRows } from '../parts/some-rows.tsx'
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
  const [userId, setUserId] = useDraft(`${id} member`)
  const [newRole, setNewRole] = useDraft(`${id} role`, 'member')
  const add = useAction(async () => {
    await ask('PUT', path + pathOf('members', userId), { body: { role: newRole } })
    setUserId('')
    organization.again()
  })
  const { data } = organization
  return (
    <Room
      name="organization"
      title={data?.name ?? id}
      id={id}
      resource={organization}
      request={{ path, command: { words: ['org', 'get'], operands: [id] } }}
    >
      <h2>Members</h2>
      <ul class="rows" data-part="rows" data-end={(data?.members.length ?? 0) <= rowsMax}>
        <SomeRows
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
                reason={member.role === 'owner' && !isOwner ? 'Only an owner of the organization may do this' : reason}
                onAct={() => ask('DELETE', path + pathOf('members', member.userId))}
                onDone={organization.again}
              >
                <p>
                  <Foreign text={member.userId} /> loses the namespaces of {id} at once, as do all tokens that act for
                  it.
                </p>
              </DangerousAction>
            </li>
          )}
        />
      </ul>
      <Form title="Add a member, or change a role" onSend={() => void (reason === undefined && add.run())}>
        <Field name="userId" label="User" value={userId} onInput={setUserId} isRequired error={add.error?.message} />
        <Field name="role" label="Role" value={newRole} onInput={setNewRole} options={roles} />
        <Action name="save" type="submit" isBusy={add.isBusy} reason={reason} label="Save" />
      </Form>
      {isManager && <OrganizationKeys path={path} />}
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
