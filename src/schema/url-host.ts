/** URLs that others write. A host beyond ASCII or encoded takes quadratic time to parse: 9 ms for 2,600 characters. */

/** Ours: characters of the host and port of a URL that somebody else wrote; a DNS name has at most 253. Past it: postern does not accept the text as a URL. */
export const hostCharsMax = 300

/** Whether a text may be given to the runtime's parser. */
export function hasShortHost(url: string): boolean {
  // As parsers read it: white space is left out, and slashes of both kinds before the host may be any number.
  const plain = url.replace(/[\t\n\r]/g, '')
  const [, host = ''] = /^[\0-\x20]*[a-z][a-z0-9+.-]*:[\\/]*([^\\/?#]*)/i.exec(plain) ?? []
  return host.length <= hostCharsMax
}

/** Whether a text is a URL whose host is short enough to parse. */
export function isUrl(text: string): boolean {
  return hasShortHost(text) && URL.canParse(text)
}
