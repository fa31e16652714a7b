/** Exports the records of a store as JSON lines, from one snapshot. */

import { escapeControlCharacters } from '../ops/escape-control.ts'
import { textOf } from '../storage/bytes.ts'
import type { ConnectionPrivate } from '../storage/connections.ts'
import { intact, type Scan } from '../storage/lmdb/scan.ts'
import { parseKey } from '../storage/record-kinds.ts'
import type { Entry } from '../storage/store.ts'

/**
 * Passes the lines, without newlines, to `give`, those of one read at once. Resolves with the namespaces that have
 * connections but do not exist; an import requires them. Throws StoreError `damaged` at the first damaged record.
 */
export async function exportLines(
  scan: Scan,
  secret: string,
  give: (lines: readonly string[]) => void,
): Promise<string[]> {
  const known = newKnown()
  let records = 0
  // Control characters occur only inside JSON strings, where their escapes are valid JSON.
  const write = (lines: readonly string[]) => give(lines.map(escapeControlCharacters))
  write([JSON.stringify({ postern: 'export', version: 1, secret })])
  await scan((scanned) => {
    const lines = intact(scanned).flatMap((entry) => lineOf(entry, known) ?? [])
    records += lines.length
    if (lines.length > 0) write(lines)
  })
  write([JSON.stringify({ postern: 'end', records })])
  return [...known.named].filter((namespace) => !known.there.has(namespace))
}

/** Parts that come before their records: single ones come in the order of keys, and connections, packed, come last. */
function newKnown() {
  return {
    /** Hashes of API keys, by the id of the key. */
    digests: new Map<string, string>(),
    /** The registered server of each connection that has one. */
    servers: new Map<string, string | undefined>(),
    /** Namespaces of connections, and namespaces that exist. */
    named: new Set<string>(),
    there: new Set<string>(),
  }
}

type Known = ReturnType<typeof newKnown>

/** The line of a record; undefined if it has none. */
function lineOf({ key, value }: Entry, known: Known): string | undefined {
  const json = textOf(value)
  const parsed = parseKey(key)
  if (parsed?.kind === 'namespace') known.there.add(parsed.namespace)
  switch (parsed?.kind) {
    case 'organization':
    case 'namespace':
    case 'view':
    case 'server':
    case 'listing':
      return `{"kind":"${parsed.kind}","${parsed.kind}":${json}}`
    case 'member':
      return JSON.stringify({ ...parsed, role: json })
    case 'apiKeyDigest':
      known.digests.set(json, parsed.digest)
      return undefined
    case 'apiKey': {
      const digest = known.digests.get(parsed.keyId)
      // One without a hash opens nothing.
      return digest && `{"kind":"apiKey","apiKey":${json},"digest":"${digest}"}`
    }
    case 'pins':
      return JSON.stringify({ ...parsed, record: json })
    case 'mock':
      return `{"kind":"mock","position":"${parsed.position}","mock":${json}}`
    case 'revocation':
      return `{"kind":"revocation","jti":${JSON.stringify(parsed.jti)},"until":${json}}`
    case 'connectionPrivate':
      known.servers.set(`${parsed.namespace}/${parsed.connectionId}`, (JSON.parse(json) as ConnectionPrivate).server)
      return undefined
    case 'connection': {
      const { namespace, connectionId } = parsed
      known.named.add(namespace)
      const server = known.servers.get(`${namespace}/${connectionId}`)
      const from = server === undefined ? '' : `,"server":${JSON.stringify(server)}`
      return `{"kind":"connection","namespace":${JSON.stringify(namespace)},"connection":${json}${from}}`
    }
    // Derived from records, meaningful for this instance only, or secret.
    default:
      return undefined
  }
}
