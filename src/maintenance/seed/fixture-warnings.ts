/** Warnings of `postern fixtures check` about fixtures that are valid but probably not intended. */

import { readdirSync } from 'node:fs'
import { isIP } from 'node:net'
import { extname } from 'node:path'
import { didYouMean } from '../../schema/near-name.ts'
import { asBuffer } from '../../storage/bytes.ts'
import { hostOf, refusalOf } from '../../upstream/addresses.ts'
import type { FixtureFile } from './fixture-schema.ts'
import { type FixtureProblem, positionIn } from './problem.ts'
import type { SourceFile } from './source-files.ts'

/** About connections in the order of the files, then API keys. The sources must have passed `readFixtures`. */
export function fixtureWarnings(sources: readonly SourceFile[]): FixtureProblem[] {
  /** Users who are a member of an organization or own a namespace. */
  const users = new Set<string>()
  const keys: (Omit<FixtureProblem, 'message'> & { readonly userId: string })[] = []
  const doubts: FixtureProblem[] = []
  /** The refusal of each origin: a thousand connections may share one. */
  const origins = new Map<string, string | undefined>()

  for (const { file, read } of sources) {
    const document = JSON.parse(asBuffer(read()).toString()) as FixtureFile
    for (const { members } of document.organizations ?? []) for (const { userId } of members) users.add(userId)
    for (const namespace of document.namespaces ?? []) if ('userId' in namespace) users.add(namespace.userId)
    for (const [index, { userId, operator }] of (document.apiKeys ?? []).entries()) {
      if (operator !== true) keys.push({ ...positionIn(file, document, `apiKeys[${index}].userId`), userId })
    }
    for (const [index, { mcpUrl, mock }] of (document.connections ?? []).entries()) {
      if (typeof mcpUrl !== 'string' || mock?.enabled === true) continue
      const origin = URL.canParse(mcpUrl) ? new URL(mcpUrl).origin : mcpUrl
      if (!origins.has(origin)) origins.set(origin, refusalOfUrl(origin))
      const message = origins.get(origin)
      if (message !== undefined) doubts.push({ ...positionIn(file, document, `connections[${index}].mcpUrl`), message })
    }
  }
  for (const { userId, ...where } of keys) {
    if (users.has(userId)) continue
    const message = `${JSON.stringify(userId)} belongs to no organization and owns no namespace${didYouMean(userId, users)}`
    doubts.push({ ...where, message })
  }
  return doubts
}

/** The address policy of `serve` with default flags. */
const policy = { allowed: [], isPublicAllowed: true, isSelf: () => false }

/** Why `serve` would refuse this URL, or undefined. Names are not resolved: their addresses may differ there. */
function refusalOfUrl(text: string): string | undefined {
  if (!URL.canParse(text)) return 'is not a URL'
  const url = new URL(text)
  const host = hostOf(url)
  const address = /^(?:.+\.)?localhost$/.test(host) ? '127.0.0.1' : host
  return isIP(address) === 0 ? undefined : refusalOf(url, address, policy)
}

/** True for what looks like a fixture and is not read: a file of another format, a `.JSON`, or a folder of fixtures. */
export function looksIgnored(file: string): boolean {
  const extension = extname(file)
  const formats = ['.json', '.jsonc', '.json5', '.yaml', '.yml', '.ndjson', '.jsonl']
  if (extension !== '.json' && formats.includes(extension.toLowerCase())) return true
  try {
    return readdirSync(file).some((name) => name.endsWith('.json'))
  } catch {
    // A file, or a folder that cannot be read.
    return false
  }
}
