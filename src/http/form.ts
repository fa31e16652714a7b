/** Reads the bodies of HTML forms and of OAuth requests (`application/x-www-form-urlencoded`), strictly. */

import { isUtf8 } from 'node:buffer'
import { invalidRequest } from '../errors.ts'
import { mediaType, readBytes } from './body.ts'

/** Ours: fields of a form. Past it: 400. */
export const formFieldsMax = 1000

/** The fields of a form, in order. */
export class Form extends URLSearchParams {
  /** The value of a field; undefined if it was not sent. Throws `invalid_request` if it was sent twice. */
  one(name: string): string | undefined {
    const [value, ...others] = this.getAll(name)
    if (others.length > 0) throw invalidRequest(`${name}: is given twice`)
    return value
  }
}

/** Throws `invalid_request` for another content type, invalid UTF-8, or too many bytes or fields. */
export async function readForm(request: Request): Promise<Form> {
  const bytes = await readBytes(request, (bytesMax) =>
    invalidRequest(`the form is too large: at most ${bytesMax} bytes are read`),
  )
  if (mediaType(request.headers.get('content-type')) !== 'application/x-www-form-urlencoded')
    throw invalidRequest('content-type: must be application/x-www-form-urlencoded')
  // A byte that is none takes as long as nine others.
  if (!isUtf8(bytes)) throw invalidRequest('the form is not percent-encoded UTF-8')
  const text = Buffer.from(bytes).toString()
  // Before they are parsed: thirty thousand take five milliseconds.
  if (text.split('&', formFieldsMax + 1).length > formFieldsMax)
    throw invalidRequest(`the form has more than ${formFieldsMax} fields`)
  const form = new Form(text)
  // The runtime puts U+FFFD where bytes are not UTF-8.
  for (const [name, value] of form)
    if (name.includes('\ufffd') || value.includes('\ufffd'))
      throw invalidRequest(`${name.slice(0, 100)}: is not percent-encoded UTF-8`)
  return form
}
