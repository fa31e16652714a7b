/** The tools of a connection, as far as they are known without asking its server (contract, 21.4). */

import type { AuthorizedConnection, RequestContext } from '../../auth/authorizer.ts'
import { allowanceOf } from '../../fairness/allowance.ts'
import { readingServer } from '../../storage/directory-records.ts'
import type { ExplainDeps } from './explain-deps.ts'

/**
 * Their names: of a mock's server, else of the accepted or last complete list, else of the registered server. Undefined
 * if none are known.
 */
export async function knownTools(
  { kept }: Pick<ExplainDeps, 'kept'>,
  context: RequestContext,
  { namespace, connectionId, stored }: AuthorizedConnection,
): Promise<readonly string[] | undefined> {
  const isMock = stored.connection.mock?.enabled === true
  const listed = isMock
    ? undefined
    : await kept.use(context, [{ namespace, connectionId }], false, ([one]) =>
        one?.kept?.lists.tools.map(({ own }) => own),
      )
  if (listed !== undefined) return listed
  const { server } = stored.privatePart
  const bytes = server === undefined ? undefined : await context.directory.serverJson(server)
  if (bytes === undefined) return undefined
  const { tools } = await allowanceOf(context.request).parse(bytes.length, readingServer(bytes)) // 429
  return tools?.map(({ name }) => name)
}
