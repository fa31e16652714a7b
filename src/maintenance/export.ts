/** The records of a store as lines, from one snapshot. */

import { escapeControlCharacters } from '../ops/escape-control.ts'
import type { ConnectionPrivate } from '../storage/connections.ts'
import { parseKey } from '../storage/keys.ts'
import { scanStore } from '../storage/lmdb/scan.ts'
import { asBuffer, type Entry, StoreError } from '../storage/store.ts'

/**
 * Gives each line to `give`. `folder` is the store's. Resolves with the namespaces that have connections and are not
 * there: an import wants each. Throws StoreError `damaged`.
 */
export async function exportLines(folder: string, secret: string, give: (line: string) => void): Promise<string[]> {
  // Characters that a terminal acts on stand in strings only, where their escapes are JSON's own.
  const write = (line: string) => give(escapeControlCharacters(line))
  write(JSON.stringify({ postern: 'export', version: 1, secret }))
  let records = 0
  /** What comes before the record it belongs to. */
  const digests = new Map<string, string>()
  const servers = new Map<string, string | undefined>()
  const named = new Set<string>()
  const there = new Set<string>()

  const lineOf = ({ key, value }: Entry): string | undefined => {
    const json = asBuffer(value).toString()
    const parsed = parseKey(key)
    switch (parsed?.kind) {
      case 'organization':
        return `{"kind":"organization","organization":${json}}`
      case 'member':
        return JSON.stringify({ ...parsed, role: json })
      case 'namespace':
        there.add(parsed.namespace)
        return `{"kind":"namespace","namespace":${json}}`
      case 'apiKeyDigest':
        digests.set(json, parsed.digest)
        return undefined
      case 'apiKey':
        return `{"kind":"apiKey","apiKey":${json},"digest":"${digests.get(parsed.keyId) ?? ''}"}`
      case 'server':
        return `{"kind":"server","server":${json}}`
      case 'mock':
        return `{"kind":"mock","position":"${parsed.position}","mock":${json}}`
      case 'revocation':
        return `{"kind":"revocation","jti":${JSON.stringify(parsed.jti)},"until":${json}}`
      case 'connectionPrivate':
        servers.set(`${parsed.namespace}/${parsed.connectionId}`, (JSON.parse(json) as ConnectionPrivate).server)
        return undefined
      case 'connection': {
        const { namespace, connectionId } = parsed
        named.add(namespace)
        const server = servers.get(`${namespace}/${connectionId}`)
        const from = server === undefined ? '' : `,"server":${JSON.stringify(server)}`
        return `{"kind":"connection","namespace":${JSON.stringify(namespace)},"connection":${json}${from}}`
      }
      // Made again from the records, of this instance alone, or secret.
      case 'indexEntry':
      case 'connectionsVersion':
      case 'registryVersion':
      case 'usage':
      case 'leftNamespace':
      case 'signingKeys':
      case 'started':
      case 'baseUrl':
      case 'fixturesDigest':
      case 'fixturesManifest':
      case 'ahead':
      case undefined:
        return undefined
    }
  }
  await scanStore(folder, {
    entry(entry) {
      const line = lineOf(entry)
      if (line === undefined) return
      write(line)
      records += 1
    },
    damaged() {
      throw new StoreError('damaged', 'a record is damaged: run `postern verify`')
    },
  })
  write(JSON.stringify({ postern: 'end', records }))
  return [...named].filter((namespace) => !there.has(namespace))
}
