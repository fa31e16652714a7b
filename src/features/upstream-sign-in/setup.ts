/**
 * `/connect/NAMESPACE/ID/setup`: a person signs in to the server behind a connection, or out, or enters what the server
 * must be told (contract, 14.3, 14.4, 14.10). Opening the page contacts nobody; its form does.
 */

import { requireFormToken } from '../../auth/browser-sessions.ts'
import type { DirectorySnapshot } from '../../auth/directory.ts'
import { openPart } from '../../auth/sealed-parts.ts'
import { conflict, invalidRequest, PlatformError } from '../../errors.ts'
import { type RateLimit, requireRate } from '../../fairness/rate-limit.ts'
import { type Form, readForm } from '../../http/form.ts'
import { isSecureUrl } from '../../http/guard.ts'
import { handlersOf } from '../../http/handler.ts'
import { impossiblePage } from '../../http/html-page.ts'
import type { ConnectionRef, GivenClient } from '../../model/connection.ts'
import { formTokenField } from '../../model/input-fields.ts'
import { ownerName } from '../../model/organization.ts'
import { type BeginDeps, beginSignIn, signInTarget } from './begin.ts'
import { configOf, enterInput, isInputDue } from './input.ts'
import type { StoredClient } from './oauth-client.ts'
import { inputPage, setupPage, signedOutPage, type Visit } from './setup-pages.ts'
import type { UpstreamCredentials } from './token-refresh.ts'
import type { UpstreamTokens } from './tokens.ts'
import { requireVisit, visitOf } from './visit.ts'

export interface SetupDeps extends BeginDeps {
  /** Limits the forms sent per connection. */
  readonly setups: RateLimit
  /** Limits them per owner of namespaces: connections are many, and each form leaves records. */
  readonly setupsOfOwner: RateLimit
  readonly credentials: UpstreamCredentials
}

export const setupHandlers = handlersOf({ setupPage: showSetupPage, startSetup })

async function showSetupPage(deps: SetupDeps, request: Request): Promise<Response> {
  const { directory } = deps
  const visit = await visitOf(deps, request) // 400, 404, 403
  if (visit instanceof Response) return visit // 303
  if (!isSecureUrl(deps.base)) return impossiblePage(deps.base)
  const config = await configOf(request, await directory.current(), visit.stored)
  if (isInputDue(visit, config, deps.headersKey)) return inputPage({ ...visit, ...config, values: new Map() })
  signInTarget(deps, visit) // 409
  const tokens = openPart<UpstreamTokens>('tokens', visit.stored.privatePart, visit.ref, deps.signInKey)
  return setupPage(visit, tokens, config.fields.length > 0)
}

async function startSetup(deps: SetupDeps, request: Request): Promise<Response> {
  const visit = await visitOf(deps, request) // 400, 404, 403
  if (visit instanceof Response) return visit // 303
  const form = await readForm(request) // 400
  // The form may have come slowly.
  const again = await visitOf(deps, request) // 400, 404, 403
  if (again instanceof Response) return again // 303
  // An error leads back to this page.
  return answerForm(deps, again, form).catch((thrown) => {
    throw thrown instanceof PlatformError ? thrown.with({ setupUrl: visit.action }) : thrown
  }) // 400, 403, 409, 429, 502
}

/** Throws PlatformError. */
async function answerForm(deps: SetupDeps, visit: Visit, form: Form): Promise<Response> {
  const { directory } = deps
  if (!isSecureUrl(deps.base)) return impossiblePage(deps.base)
  const { request } = visit
  requireFormToken(form.one(formTokenField), visit.formToken) // 403
  const now = await directory.current()
  await requireSetupRate(deps, visit.ref, now) // 429
  const config = await configOf(request, now, visit.stored)
  const { oauth, tokens } = visit.stored.privatePart
  const isEntered = config.fields.some(({ formName }) => form.one(formName) !== undefined)
  if (isInputDue(visit, config, deps.headersKey) || (isEntered && tokens === undefined))
    return enterInput(deps, visit, config, form) // 400, 409
  if (form.one('values') !== undefined) return inputPage({ ...visit, ...config, values: new Map() })
  signInTarget(deps, visit) // 409
  // Sign out first, unless the form says otherwise or the server wants more.
  const isKept = form.one('again') !== undefined || visit.stored.privatePart.wantedScope !== undefined
  if (form.one('end') !== undefined || (tokens !== undefined && !isKept)) {
    await requireVisit(deps, visit) // 409, 404, 403
    await deps.credentials.signOut(visit.ref, 'by a person', visit.by)
    return signedOutPage(visit)
  }
  const given = openPart<StoredClient>('oauth', visit.stored.privatePart, visit.ref, deps.signInKey)
  const isTyped = given?.isTyped === true && tokens === undefined
  if (form.one('client') !== undefined && isTyped) return beginSignIn(deps, visit, { asksForClient: true })
  if (form.one('register') !== undefined && given === undefined)
    return beginSignIn(deps, visit, { registersAgain: true })
  const clientId = form.one('client_id')
  if (clientId === undefined) return beginSignIn(deps, visit, { given })
  // A ticket lets nobody replace what was given with the connection, only what was typed on this page.
  if ((oauth !== undefined && !isTyped) || tokens !== undefined) {
    throw conflict(
      'This connection already has an OAuth client: sign out first, or change the field `oauth` of the connection',
    ) // 409
  }
  return beginSignIn(deps, visit, { typed: readTypedClient(clientId, form.one('client_secret')) }) // 400
}

/** Throws `invalid_request`. */
function readTypedClient(clientId: string, clientSecret = ''): Pick<GivenClient, 'clientId' | 'clientSecret'> {
  if (!/^[\x20-\x7e]{1,500}$/.test(clientId)) throw invalidRequest('client_id: must have 1 to 500 characters of ASCII')
  if (!/^[\x20-\x7e]{0,1000}$/.test(clientSecret))
    throw invalidRequest('client_secret: must have at most 1000 characters of ASCII')
  return { clientId, ...(clientSecret !== '' && { clientSecret }) }
}

/** Throws `rate_limited`. */
async function requireSetupRate(
  { setups, setupsOfOwner }: SetupDeps,
  { namespace, connectionId }: ConnectionRef,
  directory: DirectorySnapshot,
): Promise<void> {
  requireRate(setups.take(`${namespace}/${connectionId}`), 'This page is being sent too often')
  const record = await directory.namespace(namespace)
  const owner = record === undefined ? namespace : ownerName(record)
  requireRate(setupsOfOwner.take(owner), 'Setup pages of this owner are being sent too often')
}
