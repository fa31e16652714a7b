/** The sample fixtures that the executable carries: the platform of a small company, for `postern dev`. */

import connectionsLumen from '../../../fixtures/connections-lumen.json' with { type: 'json' }
import connectionsPeople from '../../../fixtures/connections-northwind-people.json' with { type: 'json' }
import connectionsStores from '../../../fixtures/connections-northwind-stores.json' with { type: 'json' }
import connectionsTeams from '../../../fixtures/connections-northwind-teams.json' with { type: 'json' }
import connectionsPersonal from '../../../fixtures/connections-personal.json' with { type: 'json' }
import keys from '../../../fixtures/keys.json' with { type: 'json' }
import mocks from '../../../fixtures/mocks.json' with { type: 'json' }
import organizations from '../../../fixtures/organizations.json' with { type: 'json' }
import serversLumen from '../../../fixtures/servers-lumen.json' with { type: 'json' }
import serversNorthwind from '../../../fixtures/servers-northwind.json' with { type: 'json' }
import serversTeams from '../../../fixtures/servers-northwind-teams.json' with { type: 'json' }
import type { SourceFile } from './source-files.ts'

const documents: Readonly<Record<string, unknown>> = {
  'organizations.json': organizations,
  'keys.json': keys,
  'servers-northwind.json': serversNorthwind,
  'servers-northwind-teams.json': serversTeams,
  'servers-lumen.json': serversLumen,
  'connections-northwind-people.json': connectionsPeople,
  'connections-northwind-stores.json': connectionsStores,
  'connections-northwind-teams.json': connectionsTeams,
  'connections-lumen.json': connectionsLumen,
  'connections-personal.json': connectionsPersonal,
  'mocks.json': mocks,
}

/** The sample fixtures as source files, named `sample fixtures/…` in messages. */
export function sampleSources(): SourceFile[] {
  return Object.entries(documents).map(([name, document]) => ({
    file: `sample fixtures/${name}`,
    read: () => Buffer.from(JSON.stringify(document)),
  }))
}
