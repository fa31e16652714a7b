/** A request as text to paste, for curl and as a command of postern. `$POSTERN_TOKEN` stands for the credential. */

import { base } from '../interface.ts'
import { Foreign } from './foreign.tsx'
import { CopyButton } from './parts.tsx'

export interface Request {
  readonly method?: string
  /** Below the base URL, encoded. */
  readonly path: string
  /** The text of a JSON body. */
  readonly body?: string | undefined
  /** Arguments of `postern`. Without them: no command does it. */
  readonly command?: readonly string[] | undefined
}

/** For a shell: a name of a stranger may have quotes in it. */
const quoted = (text: string) => (/^[\w./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`)
/** A terminal would act on these, or show something else than it runs. */
const hasUnseen = (text: string) => /\p{C}/u.test(text)

export function curlOf({ method = 'GET', path, body }: Request): string {
  const given = body === undefined ? [] : ["-H 'Content-Type: application/json'", `-d ${quoted(body)}`]
  const verb = method === (body === undefined ? 'GET' : 'POST') ? [] : [`-X ${method}`]
  const url = quoted(`${location.origin}${base}${path}`)
  return ['curl', ...verb, '-H "Authorization: Bearer $POSTERN_TOKEN"', ...given, url].join(' ')
}

export const commandOf = (command: readonly string[]) => ['postern', ...command.map(quoted)].join(' ')

export function AsText({ request }: { readonly request: Request }) {
  const { command } = request
  return (
    <details class="as">
      <summary>{command === undefined ? 'As curl' : 'As curl and as a command'}</summary>
      <Code part="curl" text={curlOf(request)} />
      {command !== undefined && !command.some(hasUnseen) && <Code part="command" text={commandOf(command)} />}
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
