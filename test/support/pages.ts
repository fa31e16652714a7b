/** A browser that is just enough: forms, hidden fields, cookies. */

import type { TestPlatform } from './platform.ts'

/** Sends a form. A list is a field that is sent several times. */
export async function post(
  platform: Pick<TestPlatform, 'fetch'>,
  path: string,
  fields: Readonly<Record<string, string | readonly string[]>>,
  cookie = '',
): Promise<Response> {
  const body = new URLSearchParams(
    Object.entries(fields).flatMap(([name, value]) => [value].flat().map((one) => [name, one] as [string, string])),
  )
  const headers = { 'content-type': 'application/x-www-form-urlencoded', cookie }
  return platform.fetch(path, { method: 'POST', headers, body: body.toString() })
}

/** A body whose last byte arrives after `meanwhile`, once the request was accepted. */
export function slowBody(text: string, meanwhile: () => Promise<unknown>): ReadableStream<Uint8Array> {
  const bytes = new TextEncoder().encode(text)
  let pulls = 0
  return new ReadableStream({
    async pull(controller) {
      pulls += 1
      if (pulls === 1) return controller.enqueue(bytes.subarray(0, 1))
      await meanwhile()
      controller.enqueue(bytes.subarray(1))
      controller.close()
    },
  })
}

/** The cookie that a response sets, as a request sends it. */
export function cookieIn(response: Response): string {
  return response.headers.get('set-cookie')?.split(';')[0] ?? ''
}

/** The fields of a page's inputs, with the values that they begin with. */
export function fieldsOf(page: string): Record<string, string> {
  const inputs = [...page.matchAll(/<input\b[^>]*>/g)].map(([input]) => [
    /\bname="([^"]*)"/.exec(input)?.[1] ?? '',
    plainText(/\bvalue="([^"]*)"/.exec(input)?.[1] ?? ''),
  ])
  return Object.fromEntries(inputs)
}

function plainText(text: string): string {
  return text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&quot;', '"').replaceAll('&amp;', '&')
}
