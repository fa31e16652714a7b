/**
 * Made-up platforms of any size, the same for the same size: one organization, one namespace of `count`
 * connections of about 600 bytes, each findable by six facts of very different rarity, and one server of 8 kB.
 */

import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export const benchKey = 'bench-key-of-the-owner-of-everything-0001'
export const benchNamespace = 'bench'
export const perFile = 10_000

export function connection(i: number) {
  const id = `connection-${String(i).padStart(8, '0')}`
  return {
    namespace: benchNamespace,
    connectionId: id,
    name: `Reporting connection number ${i}`,
    mcpUrl: `https://mcp-${i}.example.com/organizations/bench/mcp`,
    metadata: {
      userId: `user-${i}`,
      team: `team-${i % 1000}`,
      env: ['prod', 'staging', 'test'][i % 3],
      half: i % 2 === 0 ? 'even' : 'odd',
    },
    transport: 'http',
    createdAt: '2026-03-02T09:14:07.000Z',
    status: { state: 'connected' },
    serverInfo: {
      name: 'reporting',
      version: '1.4.2',
      title: 'Reporting and scheduled exports',
      websiteUrl: 'https://reporting.example.com/documentation',
      description: 'Runs saved reports on a schedule and hands out their results as tables.',
    },
  }
}

export function server(qualifiedName = 'bench/reports') {
  const tool = (i: number) => ({
    name: `run_report_${i}`,
    description: `Runs report ${i} with the given parameters and gives back its rows.`,
    inputSchema: {
      type: 'object',
      properties: {
        from: { type: 'string', format: 'date', description: 'First day of the report, included.' },
        to: { type: 'string', format: 'date', description: 'Last day of the report, included.' },
        columns: { type: 'array', items: { type: 'string' }, description: 'Columns to give back; all by default.' },
      },
      required: ['from', 'to'],
    },
    outputSchema: {
      type: 'object',
      properties: { rows: { type: 'array', items: { type: 'object' } }, truncated: { type: 'boolean' } },
      required: ['rows'],
    },
  })
  return {
    qualifiedName,
    displayName: 'Reports',
    description: 'Saved reports as tools.',
    remote: true,
    deploymentUrl: 'https://reports.example.com/mcp',
    connections: [{ type: 'http', deploymentUrl: 'https://reports.example.com/mcp', configSchema: {} }],
    tools: Array.from({ length: 12 }, (_, i) => tool(i)),
  }
}

/** Writes the fixture files of a platform of `count` connections; namespace `small` gets 1,000 of its own. */
export function writeFixtures(folder: string, count: number): void {
  mkdirSync(folder, { recursive: true })
  const write = (name: string, document: object) => writeFileSync(join(folder, name), JSON.stringify(document))
  write('platform.json', {
    organizations: [{ organizationId: 'org_bench', name: 'Bench', members: [{ userId: 'owner', role: 'owner' }] }],
    namespaces: [
      { namespace: benchNamespace, organizationId: 'org_bench' },
      { namespace: 'small', organizationId: 'org_bench' },
    ],
    apiKeys: [{ userId: 'owner', key: benchKey }],
    servers: [server()],
  })
  const list = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => connection(from + i))
  write('small.json', { connections: list(0, 1000).map((row) => ({ ...row, namespace: 'small' })) })
  for (let from = 0; from < count; from += perFile) {
    const connections = list(from, Math.min(from + perFile, count))
    write(`connections-${String(from / perFile).padStart(5, '0')}.json`, { connections })
  }
}

if (import.meta.main) writeFixtures(process.argv[2] ?? 'bench-fixtures', Number(process.argv[3] ?? 1_000_000))
