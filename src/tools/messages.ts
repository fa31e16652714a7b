/** `make messages`: prints every text that a user can meet, by the file that has it, to be read from top to bottom. */

import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'

const root = resolve(import.meta.dir, '../..')

/** Tools, scripts of shells and browsers, names; and the words of OpenAPI, which are read where they are shown. */
const isElsewhere = (file: string) =>
  /^src\/(?:tools|features\/reference)\/|(?:completions|made-names|page-script)\.ts$/.test(file)

/** Two words, which are no list of names, and no SQL, HTML, style or header. */
const isMessage = (text: string) =>
  /[A-Za-z]{2}[^A-Za-z]*\s[^A-Za-z]*[A-Za-z]{2}/.test(text) && !otherLanguages.test(text)
const sqlWords = 'select insert update create alter drop with where from and or set order limit begin lock listen abort'
const otherLanguages = new RegExp(
  `[<{]|^\\s*(?:--|${sqlWords.replaceAll(' ', '|')})\\s(?!a |an |the )|'self'|;\\s*$|^[\\w-]+: [\\w-]+(?:;|, [\\w-]+,)`,
  'i',
)

/** All texts with a space below `src`, in the order of files and lines, with `…` for what differs. */
export function messages(): { readonly place: string; readonly text: string }[] {
  const files = [...new Bun.Glob('src/**/*.{ts,tsx}').scanSync(root)].filter((file) => !isElsewhere(file)).sort()
  return files.flatMap((file) => {
    const code = readFileSync(resolve(root, file), 'utf8')
    return (file.endsWith('x') ? textsOfPage(code) : textsIn(code))
      .map(({ at, text }) => ({ at, text: text.replaceAll(/<\/?[a-z][^<>]*>/g, ' ') }))
      .filter(({ text }) => isMessage(text))
      .map(({ at, text }) => ({
        place: `${file}:${code.slice(0, at).split('\n').length}`,
        text: text.trim().replaceAll(/\s+/g, ' '),
      }))
  })
}

interface Found {
  readonly at: number
  readonly text: string
}

/** The texts in quotes, and those between elements, of a page of the console; no classes and no paths. */
function textsOfPage(code: string): Found[] {
  const parts =
    /'([^'\n]+)'|\b(?!class|d|data-)[a-zA-Z]+="([^"]+)"|`([^`]+)`|[>}]([^<>{}`=;()]*[a-z][^<>{}`=;]*)(?=[<{])/g
  return [...code.matchAll(parts)].map(({ index, 1: quoted, 2: given, 3: template, 4: between }) => ({
    at: index,
    text: (quoted ?? given ?? template ?? (isCode.test(between ?? '') ? '' : between) ?? '').replaceAll(
      /\$\{[^}]*\}/g,
      '…',
    ),
  }))
}

const isCode = /\/\*|[=?&]>|\?\.|&&|\b(?:function|interface|const|catch|case|void|extends|return)\b/

/** The texts in quotes and the templates of TypeScript, without its comments and regular expressions. */
function textsIn(code: string): Found[] {
  const found: Found[] = []
  /** Reads code from here to its end, or to the brace that ends a part of a template; returns where that is. */
  function read(from: number): number {
    let depth = 0
    let before = ''
    for (let at = from; at < code.length; at += 1) {
      const first = code[at] as string
      const two = code.slice(at, at + 2)
      if (two === '//') at = code.indexOf('\n', at)
      else if (two === '/*') at = code.indexOf('*/', at) + 1
      else if (first === '/' && /[(,=:[!&|?{};+]$|^$|\breturn$/.test(before))
        at = endOf(/\/(?:\\.|\[(?:\\.|[^\]])*\]|[^/[])+/y, at)
      else if (first === "'") at = quoted(at)
      else if (first === '`') at = template(at)
      else if (first === '}' && depth === 0 && from > 0) return at
      else depth += first === '{' ? 1 : first === '}' ? -1 : 0
      before = /\s/.test(first) ? before : `${before}${first}`.slice(-6)
    }
    return code.length
  }
  const endOf = (pattern: RegExp, at: number) => {
    pattern.lastIndex = at
    return pattern.test(code) ? pattern.lastIndex : at
  }
  function quoted(at: number): number {
    const end = endOf(/'(?:\\.|[^'\\\n])*/y, at)
    found.push({ at, text: unescaped(code.slice(at + 1, end)) })
    return end
  }
  function template(start: number): number {
    let text = ''
    let at = start + 1
    for (; code[at] !== '`' && at < code.length; at += 1) {
      if (code.startsWith('${', at)) {
        at = read(at + 2)
        text += '…'
      } else {
        text += code[at]
        if (code[at] === '\\') text += code[++at]
      }
    }
    found.push({ at: start, text: unescaped(text) })
    return at
  }
  read(0)
  return found
}

const unescaped = (text: string) => text.replaceAll(/\\n/g, ' ').replaceAll(/\\(.)/g, '$1')

if (import.meta.main) for (const { place, text } of messages()) console.log(`${place}: ${text}`)
