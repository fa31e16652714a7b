/**
 * A browser for real clients: opens the URL that a client wants its user to visit, signs in with an API key, consents,
 * and follows the redirect back to the client.
 *
 *   bun test/clients/browser.ts KEY [FIELD=VALUE]... URL
 */

import { cookieIn, fieldsOf } from '../support/pages.ts'

/** Resolves with the URL that the client was called back at. `fields`: what is chosen on the consent page. */
export async function signInAndConsent(
  url: string,
  key: string,
  fields: readonly (readonly [name: string, value: string])[] = [],
): Promise<string> {
  const away = await visit(url)
  const signInUrl = away.headers.get('location') ?? ''
  const signInPage = await (await visit(signInUrl)).text()
  const signedIn = await send(actionOf(signInPage), Object.entries({ ...fieldsOf(signInPage), key }))
  const cookie = cookieIn(signedIn)
  const consent = await (await visit(signedIn.headers.get('location') ?? '', cookie)).text()
  const { form = '' } = fieldsOf(consent)
  const chosen = fields.length > 0 ? fields : ([['access', 'all']] as const)
  const back = await send(actionOf(consent), [['form', form], ['days', '30'], ['decision', 'allow'], ...chosen], cookie)
  const callback = back.headers.get('location') ?? ''
  await (await fetch(callback)).text()
  return callback
}

const visit = (url: string, cookie = '') => fetch(url, { redirect: 'manual', headers: { cookie } })

async function send(url: string, fields: readonly (readonly [string, string])[], cookie = ''): Promise<Response> {
  const body = new URLSearchParams(fields.map(([name, value]) => [name, value] as [string, string]))
  const headers = { 'content-type': 'application/x-www-form-urlencoded', cookie }
  const response = await fetch(url, { method: 'POST', redirect: 'manual', headers, body: body.toString() })
  if (response.status !== 303) throw new Error(`${url} answered ${response.status}: ${await response.text()}`)
  return response
}

function actionOf(page: string): string {
  return (/action="([^"]*)"/.exec(page)?.[1] ?? '').replaceAll('&amp;', '&')
}

if (import.meta.main) {
  const [key = '', ...rest] = process.argv.slice(2)
  const url = rest.pop() ?? ''
  const fields = rest.map((pair) => pair.split('=', 2) as [string, string])
  console.log(await signInAndConsent(url, key, fields))
}
