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
  /** Without one, `postern api` sends it. */
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
const plain = (json: string) => json.replace(unseen, (one) => one.replace(/[^]/g, (unit) => `\\u${hexOf(unit)}`))

/** A unit of UTF-16 in four digits. */
const hexOf = (unit: string) => unit.charCodeAt(0).toString(16).padStart(4, '0')

/** The method, where curl and `postern api` would take another one. */
const explicitMethod = ({ method = 'GET', body }: Request) =>
  method === (body === undefined ? 'GET' : 'POST') ? undefined : method

export function curlOf(request: Request): string {
  const { path, body } = request
  const given = body === undefined ? [] : ["-H 'Content-Type: application/json'", `-d ${shellWord(plain(body))}`]
  const method = explicitMethod(request)
  const verb = method === undefined ? [] : [`-X ${method}`]
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

/** The command that sends a request as it is. */
function apiCommand(request: Request): Command {
  const { path, body } = request
  const method = explicitMethod(request)
  const options = { ...(method !== undefined && { method }), ...(body !== undefined && { body: plain(body) }) }
  return { words: ['api'], options, operands: [path] }
}

export function AsText({ request }: { readonly request: Request }) {
  const command = commandOf(request.command ?? apiCommand(request))
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
