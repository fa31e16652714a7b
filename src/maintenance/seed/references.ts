/**
 * References between fixtures: names that must exist once all files are read, where each was used first, and how often.
 * Checked at the end, because a name may be defined in a later file.
 */

import { didYouMean } from '../../schema/near-name.ts'
import type { FixtureProblem } from './problem.ts'

/** Suggestions for one set of fixtures; each compares all names of a kind. Past it: problems without a suggestion. */
const nameGuessesMax = 50

type Place = Omit<FixtureProblem, 'message'>
type Kind = 'organization' | 'namespace' | 'server' | 'tool'

/** Collects references while files are read. `names`: those that the files define, as far as they are read. */
export function createReferences(names: Readonly<Record<Kind, ReadonlySet<string>>>) {
  /** By kind, then by name: a million connections may refer to one namespace. */
  const missing = new Map<Kind, Map<string, { readonly first: Place; count: number }>>()

  return {
    /** Notes a use of a name, which must be there at the end. `place` is called for the first use alone. */
    add(kind: Kind, name: string, place: () => Place): void {
      if (names[kind].has(name)) return
      const references = missing.getOrInsertComputed(kind, () => new Map())
      references.getOrInsertComputed(name, () => ({ first: place(), count: 0 })).count += 1
    },
    /** One problem for each name that is still missing. */
    problems(): FixtureProblem[] {
      const problems: FixtureProblem[] = []
      for (const [kind, references] of missing) {
        const known = names[kind]
        for (const [name, { first, count }] of references) {
          if (known.has(name)) continue
          // A tool's name is `server NUL tool`. If the server is missing, that problem is enough.
          const [server = '', tool] = name.split('\0', 2)
          if (tool !== undefined && !names.server.has(server)) continue
          const shown = tool ?? name
          const candidates = tool === undefined ? known : toolsOf(server, known)
          const guess = problems.length < nameGuessesMax ? didYouMean(shown, candidates) : ''
          const form = first.place.endsWith('.qualifiedName') ? qualifiedNameHint(first.record, names.namespace) : ''
          const more = count > 1 ? ` (${count - 1} more ${count > 2 ? 'name' : 'names'} it too)` : ''
          const message = `names the ${kind} ${JSON.stringify(shown)}, which no fixture has${guess || form}${more}`
          problems.push({ ...first, message })
        }
      }
      return problems
    },
  }
}

/** The tools of one server, without the prefix. */
function toolsOf(server: string, tools: ReadonlySet<string>): string[] {
  const prefix = `${server}\0`
  return [...tools].filter((name) => name.startsWith(prefix)).map((name) => name.slice(prefix.length))
}

/** A hint for a name without a slash. It is valid, for a namespace-only server, but rarely intended. */
function qualifiedNameHint(name: string | undefined, namespaces: ReadonlySet<string>): string {
  if (name === undefined || name.includes('/')) return ''
  const [namespace = 'NAMESPACE'] = namespaces
  return `: a server is called NAMESPACE/NAME, like ${JSON.stringify(`${namespace}/${name}`)}`
}
