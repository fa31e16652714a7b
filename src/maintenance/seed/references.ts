/**
 * Names by which fixtures refer to each other: what must be there by the end, who named it first, and how many more
 * do.
 */

import { nameGuessesMax } from '../../limits.ts'
import { didYouMean } from '../../schema/near-name.ts'
import type { FixtureProblem } from './problem.ts'

type Place = Omit<FixtureProblem, 'message'>

interface Reference {
  readonly kind: string
  readonly first: Place
  count: number
}

export interface References {
  /** Something names what is not known so far, and may be by the end. */
  add(kind: string, known: ReadonlySet<string>, name: string, place: () => Place): void
  /** Of each name that is not known even now, one. */
  problems(names: Names): FixtureProblem[]
}

interface Names {
  readonly serverNames: ReadonlySet<string>
  readonly namespaceNames: ReadonlySet<string>
}

export function createReferences(): References {
  /** By the set that the name must be in, and the name: a million connections may name one namespace. */
  const missing = new Map<ReadonlySet<string>, Map<string, Reference>>()

  return {
    add(kind, known, name, place) {
      let references = missing.get(known)
      if (references === undefined) {
        references = new Map()
        missing.set(known, references)
      }
      const reference = references.get(name)
      if (reference === undefined) references.set(name, { kind, first: place(), count: 1 })
      else reference.count += 1
    },
    problems({ serverNames, namespaceNames }) {
      const problems: FixtureProblem[] = []
      for (const [known, references] of missing) {
        for (const [name, { kind, first, count }] of references) {
          if (known.has(name)) continue
          // A tool is named with its server; of one that is not there nothing more is said.
          const [server = '', tool] = name.split('\0', 2)
          if (tool !== undefined && !serverNames.has(server)) continue
          const shown = tool ?? name
          const candidates = tool === undefined ? known : toolsOf(server, known)
          const guess = problems.length < nameGuessesMax ? didYouMean(shown, candidates) : ''
          const form = first.place.endsWith('.qualifiedName') ? qualifiedNameHint(first.record, namespaceNames) : ''
          const more = count > 1 ? ` (${count - 1} more ${count > 2 ? 'name' : 'names'} it too)` : ''
          const message = `names the ${kind} ${JSON.stringify(shown)}, which no fixture has${guess || form}${more}`
          problems.push({ ...first, message })
        }
      }
      return problems
    },
  }
}

function toolsOf(server: string, tools: ReadonlySet<string>): string[] {
  const prefix = `${server}\0`
  return [...tools].filter((name) => name.startsWith(prefix)).map((name) => name.slice(prefix.length))
}

/** A name without a slash is that of a namespace's only server, which few mean. */
function qualifiedNameHint(name: string | undefined, namespaces: ReadonlySet<string>): string {
  if (name === undefined || name.includes('/')) return ''
  const [namespace = 'NAMESPACE'] = namespaces
  return `: a server is called NAMESPACE/NAME, like ${JSON.stringify(`${namespace}/${name}`)}`
}
