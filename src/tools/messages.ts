/** `make messages`: prints every message that a user can meet, by the file that has it, to be read from top to bottom. */

import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'

const root = resolve(import.meta.dir, '../..')
/** The functions and classes that take a message. Lines of the log are messages to operators. */
const errors = ['CommandError', 'PlatformError', 'StoreError', 'UpstreamError', 'OAuthError']
const refusals = ['invalidRequest', 'notFound', 'conflict', 'rateLimited', 'requireRate', 'invalidGrant', 'tooMany']
const upstreams = ['upstreamError', 'unusableUpstream', 'unusable']
const lines = ['log\\.info', 'log\\.warn', 'log\\.error']
const takers = new RegExp(`\\b(?:${[...errors, ...refusals, ...upstreams, ...lines].join('|')})\\(`, 'g')
/** A text in quotes, or a template. */
const texts = /'((?:[^'\\\n]|\\.)*)'|`((?:[^`\\]|\\.)*)`/g

/** All messages below `src`, in the order of files and lines, with `…` for what differs. */
export function messages(): { readonly place: string; readonly text: string }[] {
  const files = [...new Bun.Glob('src/**/*.ts').scanSync(root)].sort()
  return files.flatMap((file) => {
    const code = readFileSync(resolve(root, file), 'utf8')
    return [...code.matchAll(takers)].flatMap(({ index }) => {
      const line = code.slice(0, index).split('\n').length
      // A message has words; a code and a name have no space.
      const said = [...argumentsAt(code, code.indexOf('(', index)).matchAll(texts)]
        .map(([, plain, template = '']) => plain ?? template.replaceAll(/\$\{(?:[^{}]|\{[^{}]*\})*\}/g, '…'))
        .filter((text) => text.includes(' '))
      return said.map((text) => ({ place: `${file}:${line}`, text: text.replaceAll(/\\(.)/g, '$1') }))
    })
  })
}

/** The code between a parenthesis and the one that closes it. */
function argumentsAt(code: string, open: number): string {
  let depth = 0
  for (let at = open; at < code.length; at += 1) {
    if (code[at] === '(') depth += 1
    if (code[at] === ')') depth -= 1
    if (depth === 0) return code.slice(open + 1, at)
  }
  return ''
}

if (import.meta.main) for (const { place, text } of messages()) console.log(`${place}: ${text}`)
