/** The records of a store as lines, from one snapshot. */

import { printable } from '../printable.ts'
import { inspect } from '../storage/inspect.ts'
import { connectionOf, latin1Key } from '../storage/keys.ts'
import { asBuffer, type Entry, StoreError } from '../storage/store.ts'

/**
 * Gives each line to `give`. `folder` is the store's. Resolves with the namespaces that have connections and are not
 * there: an import wants each. Throws StoreError `damaged`.
 */
export async function exportLines(folder: string, secret: string, give: (line: string) => void): Promise<string[]> {
  // Characters that a terminal acts on stand in strings only, where their escapes are JSON's own.
  const write = (line: string) => give(printable(line))
  write(JSON.stringify({ postern: 'export', version: 1, secret }))
  let records = 0
  /** What comes before the record it belongs to. */
  const digests = new Map<string, string>()
  const servers = new Map<string, string>()
  const named = new Set<string>()
  const there = new Set<string>()

  const lineOf = ({ key, value }: Entry): string | undefined => {
    const parts = latin1Key(key).slice(1).split('\0')
    const [first = '', second = ''] = parts
    const json = asBuffer(value).toString()
    switch (String.fromCharCode(key[0] ?? 0)) {
      case 'o':
        return `{"kind":"organization","organization":${json}}`
      case 'm':
        return JSON.stringify({ kind: 'member', organizationId: first, userId: utf8(second), role: json })
      case 'n':
        there.add(first)
        return `{"kind":"namespace","namespace":${json}}`
      case 'h':
        digests.set(json, first)
        return undefined
      case 'k':
        return `{"kind":"apiKey","apiKey":${json},"digest":"${digests.get(first) ?? ''}"}`
      case 's':
        return `{"kind":"server","server":${json}}`
      case 'a':
        return `{"kind":"mock","position":"${second}","mock":${json}}`
      case 'r':
        return `{"kind":"revocation","jti":${JSON.stringify(first)},"until":${json}}`
      case 'p':
        servers.set(latin1Key(key).slice(1), (JSON.parse(json) as { server: string }).server)
        return undefined
      case 'c': {
        const { namespace = '' } = connectionOf(key) ?? {}
        named.add(namespace)
        const server = servers.get(latin1Key(key).slice(1))
        const from = server === undefined ? '' : `,"server":${JSON.stringify(server)}`
        return `{"kind":"connection","namespace":${JSON.stringify(namespace)},"connection":${json}${from}}`
      }
      default:
        return undefined
    }
  }
  await inspect(folder, {
    entry(entry) {
      const line = lineOf(entry)
      if (line === undefined) return
      write(line)
      records += 1
    },
    damaged() {
      throw new StoreError('damaged', 'a record is damaged: run  postern verify')
    },
  })
  write(JSON.stringify({ postern: 'end', records }))
  return [...named].filter((namespace) => !there.has(namespace))
}

/** Keys are read a character a byte. */
function utf8(latin1: string): string {
  return Buffer.from(latin1, 'latin1').toString()
}
