/** A small company for the tests of what explains policies. */

import { source, type TestPlatform } from '../../support/platform.ts'
import type { Random } from '../../support/random.ts'

export const ada = 'a-key-of-ada-for-explaining-00000001'
export const adas = 'a-key-of-ada-for-explaining-00000002'
export const eve = 'a-key-of-eve-for-explaining-00000001'
export const operator = 'a-key-of-an-operator-for-explaining1'
const tool = (name: string) => ({ name, inputSchema: { type: 'object' } })
export const teams = ['sales', 'ops']
const connectionsOf = (namespace: string) =>
  ['crm', 'crm-eu', 'mail'].map((connectionId, index) => ({
    namespace,
    connectionId,
    mcpUrl: 'https://x.example.com/mcp',
    metadata: { team: teams[index % 2], level: index },
    mock: { enabled: true },
    server: 'acme/tools',
  }))
/** One to delete: its server cannot be reached, so nothing asks it. */
export const spare = { mcpUrl: 'https://y.example.com', metadata: { team: 'ops', level: 1 } }

export const world = source('acme.json', {
  organizations: [{ organizationId: 'org', name: 'Org', members: [{ userId: 'ada', role: 'member' }] }],
  namespaces: [
    { namespace: 'acme', userId: 'ada' },
    { namespace: 'lab', organizationId: 'org' },
    { namespace: 'eves', userId: 'eve' },
  ],
  servers: [
    {
      qualifiedName: 'acme/tools',
      displayName: 'Tools',
      description: '',
      remote: true,
      connections: [],
      tools: ['find', 'find.all', 'delete_account'].map(tool),
    },
  ],
  connections: ['acme', 'lab', 'eves'].flatMap((namespace) => [
    ...connectionsOf(namespace),
    { namespace, connectionId: 'spare', ...spare },
  ]),
  apiKeys: [
    { userId: 'ada', key: ada },
    { userId: 'ada', key: adas },
    { userId: 'eve', key: eve },
    { userId: 'root', key: operator, operator: true },
  ],
})

/** A constraint on what is there, or nearly. */
export function pickConstraint(chance: Random): object {
  const fields: Record<string, unknown> = {}
  const add = (name: string, all: readonly string[], part: number) => {
    const some = all.filter(() => chance.chance(0.6))
    if (some.length > 0 && chance.chance(part)) fields[name] = some
  }
  add('namespaces', ['acme', 'lab', 'eves', 'nowhere'], 0.3)
  add('resources', ['connections', 'connections', 'servers', 'namespaces'], 0.25)
  add('operations', ['read', 'write', 'execute'], 0.3)
  const sets = [{ team: 'sales' }, { team: 'ops', connectionId: 'crm-eu' }, { connectionId: 'crm' }, { level: '1' }]
  if (chance.chance(0.3))
    fields['metadata'] = sets.filter(() => chance.chance(0.5)).concat({ team: chance.pick(teams) } as never)
  const rules = [
    ['params.name', '^find$'],
    ['params.name', 'find'],
    ['method', '^tools/(call|list)$|^initialize$'],
    ['params.arguments.repo', '^a'],
    ['params.arguments', '.'],
    ['id', '^1$'],
  ] as const
  if (chance.chance(0.4))
    fields['rpcReqMatch'] = Object.fromEntries(
      rules.filter(() => chance.chance(0.3)).concat([['jsonrpc', '2']] as never),
    )
  return Object.keys(fields).length === 0 ? { ttl: '1h' } : fields
}

/** Asks a question below `/tokens`, and expects an answer. */
export async function question<T>(platform: TestPlatform, key: string, name: string, body: object): Promise<T> {
  const { status, text } = await ask(platform, key, `/tokens/${name}`, body)
  if (status !== 200) throw new Error(`${name} ${JSON.stringify(body)}: ${status} ${text}`)
  return JSON.parse(text)
}

/** Sends a body. */
export async function ask(platform: TestPlatform, key: string, path: string, body: unknown) {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json', accept: '*/*' }
  const response = await platform.fetch(path, { method: 'POST', headers, body: JSON.stringify(body) })
  return { status: response.status, text: await response.text() }
}
