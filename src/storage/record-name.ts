/** What a record is called, by its key, for a person: `connection acme/notes`. */

import { asBuffer, type Key } from './store.ts'

const kinds: Readonly<Record<string, string>> = {
  o: 'organization',
  m: 'member',
  n: 'namespace',
  k: 'API key',
  h: 'hash of an API key',
  s: 'server',
  c: 'connection',
  a: 'mock',
}

export function recordName(key: Key): string {
  const letter = String.fromCharCode(key[0] ?? 0)
  const parts = asBuffer(key).toString('utf8', 1).split('\0')
  return `${kinds[letter] ?? `record ${letter}`} ${parts.join('/')}`
}
