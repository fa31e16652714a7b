/** A request as text to paste, for curl and as a command of postern. `$POSTERN_TOKEN` stands for the credential. */

import { shellWord } from '../../model/shell-word.ts'
import { base } from '../interface.ts'
import { Foreign } from './foreign.tsx'
import { CopyButton } from './parts.tsx'

export interface Request {
  readonly method?: string
  /** Below the base URL, encoded. */
  readonly path: string
  /** The text of a JSON body. */
  readonly body?: string | undefined
  /** Without one: no command does it. */
  readonly command?: Command | undefined
}

export interface Command {
  readonly words: readonly string[]
  readonly options?: Readonly<Record<string, string>>
  readonly operands?: readonly string[]
}

/** A terminal would act on these, or show something else than it runs. */
const unseen = /[\p{C}\p{Zl}\p{Zp}]/gu

/** JSON in which nothing is unseen. */
const plain = (json: string) =>
  json.replace(unseen, (one) =>
    one
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  )

export function curlOf({ method = 'GET', path, body }: Request): string {
  const given = body === undefined ? [] : ["-H 'Content-Type: application/json'", `-d ${shellWord(plain(body))}`]
  const verb = method === (body === undefined ? 'GET' : 'POST') ? [] : [`-X ${method}`]
  const url = shellWord(`${location.origin}${base}${path}`)
  return ['curl', ...verb, '-H "Authorization: Bearer $POSTERN_TOKEN"', ...given, url].join(' ')
}

/**
 * A command of `postern`. `operands` come from strangers and addresses: behind `--` none of them is an option. Undefined
 * where something unseen is in it.
 */
export function commandOf({ words, options = {}, operands = [] }: Command): string | undefined {
  const flags = Object.entries(options).map(([name, value]) => `--${name}=${value}`)
  const all = ['postern', ...words, ...flags, ...(operands.length === 0 ? [] : ['--']), ...operands]
  return all.some((one) => one.search(unseen) >= 0) ? undefined : all.map(shellWord).join(' ')
}

export function AsText({ request }: { readonly request: Request }) {
  const command = request.command === undefined ? undefined : commandOf(request.command)
  return (
    <details class="as">
      <summary>{command === undefined ? 'As curl' : 'As curl and as a command'}</summary>
      <Code part="curl" text={curlOf(request)} />
      {command !== undefined && <Code part="command" text={command} />}
    </details>
  )
}

export function Code({ part, text }: { readonly part: string; readonly text: string }) {
  return (
    <div class="paste">
      <pre data-part={part}>
        <Foreign text={text} />
      </pre>
      <CopyButton text={text} />
    </div>
  )
}
