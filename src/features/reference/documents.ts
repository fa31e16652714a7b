/**
 * The documents of `docs/`, embedded in the executable so that they are available without a network. Imported on the
 * first request for one.
 */

import architecture from '../../../docs/architecture.md' with { type: 'text' }
import audit from '../../../docs/audit.md' with { type: 'text' }
import company from '../../../docs/company.md' with { type: 'text' }
import configuration from '../../../docs/configuration.md' with { type: 'text' }
import contract from '../../../docs/contract.md' with { type: 'text' }
import decisions from '../../../docs/decisions.md' with { type: 'text' }
import deployment from '../../../docs/deployment.md' with { type: 'text' }
import doorContract from '../../../docs/door-contract.md' with { type: 'text' }
import fixtures from '../../../docs/fixtures.md' with { type: 'text' }
import gatewayContract from '../../../docs/gateway-contract.md' with { type: 'text' }
import glossary from '../../../docs/glossary.md' with { type: 'text' }
import httpApi from '../../../docs/http-api.md' with { type: 'text' }
import limits from '../../../docs/limits.md' with { type: 'text' }
import mocks from '../../../docs/mocks.md' with { type: 'text' }
import operating from '../../../docs/operating.md' with { type: 'text' }
import performance from '../../../docs/performance.md' with { type: 'text' }
import policy from '../../../docs/policy.md' with { type: 'text' }
import index from '../../../docs/README.md' with { type: 'text' }
import replicas from '../../../docs/replicas.md' with { type: 'text' }
import signIn from '../../../docs/sign-in.md' with { type: 'text' }
import signInContract from '../../../docs/sign-in-contract.md' with { type: 'text' }
import specification from '../../../docs/specification.md' with { type: 'text' }
import storesContract from '../../../docs/stores-contract.md' with { type: 'text' }
import trust from '../../../docs/trust.md' with { type: 'text' }
import upgrade from '../../../docs/upgrade.md' with { type: 'text' }

/** `docs/README.md`, which lists the others. */
export const indexDocument: string = index

/** Markdown by page name. A test checks that the list matches the folder. */
export const documents: ReadonlyMap<string, string> = new Map([
  ['http-api', httpApi],
  ['sign-in', signIn],
  ['policy', policy],
  ['mocks', mocks],
  ['company', company],
  ['fixtures', fixtures],
  ['configuration', configuration],
  ['operating', operating],
  ['deployment', deployment],
  ['audit', audit],
  ['replicas', replicas],
  ['upgrade', upgrade],
  ['architecture', architecture],
  ['decisions', decisions],
  ['performance', performance],
  ['trust', trust],
  ['limits', limits],
  ['glossary', glossary],
  ['specification', specification],
  ['contract', contract],
  ['gateway-contract', gatewayContract],
  ['sign-in-contract', signInContract],
  ['stores-contract', storesContract],
  ['door-contract', doorContract],
])
