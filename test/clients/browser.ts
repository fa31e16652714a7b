/**
 * A browser for real clients: opens the URL that a client wants its user to visit, signs in with an API key, consents,
 * and, run as a program, follows the redirect back to the client.
 *
 *   bun test/clients/browser.ts KEY [FIELD=VALUE]... URL
 */

import { cookieIn, fieldsOf } from '../support/pages.ts'

/** Resolves with the URL at which the client waits to be called back. `fields`: what is chosen on the consent page. */
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
  return back.headers.get('location') ?? ''
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

/** A browser that follows redirects and keeps cookies, one jar for each origin. `ca`: a certificate that it trusts. */
export function browser(ca?: string) {
  const jars = new Map<string, Map<string, string>>()
  return async function visit(url: string, form?: Record<string, string>): Promise<{ url: string; page: string }> {
    let target = url
    let body = form === undefined ? undefined : new URLSearchParams(form).toString()
    for (let hop = 0; hop < 20; hop += 1) {
      const { origin } = new URL(target)
      const jar = jars.get(origin) ?? new Map<string, string>()
      jars.set(origin, jar)
      const response = await fetch(target, {
        method: body === undefined ? 'GET' : 'POST',
        redirect: 'manual',
        headers: {
          cookie: [...jar].map((pair) => pair.join('=')).join('; '),
          ...(body !== undefined && { 'content-type': 'application/x-www-form-urlencoded' }),
        },
        ...(body !== undefined && { body }),
        ...(ca !== undefined && { tls: { ca } }),
      })
      for (const cookie of response.headers.getSetCookie()) {
        const [name = '', value = ''] = (cookie.split(';')[0] ?? '').split(/=(.*)/s)
        jar.set(name, value)
      }
      const location = response.headers.get('location')
      if (location === null) return { url: target, page: await response.text() }
      target = new URL(location, target).href
      body = undefined
    }
    throw new Error('too many redirects')
  }
}

if (import.meta.main) {
  const [key = '', ...rest] = process.argv.slice(2)
  const url = rest.pop() ?? ''
  const fields = rest.map((pair) => pair.split('=', 2) as [string, string])
  await (await fetch(await signInAndConsent(url, key, fields))).text()
}
