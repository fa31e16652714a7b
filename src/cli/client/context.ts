/** The flags that commands of a running platform share, and what their actions get. */

import { createInterface } from 'node:readline/promises'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { CommandError } from '../../errors.ts'
import { escapeControlCharacters } from '../../ops/escape-control.ts'
import { type Context, collect } from '../options.ts'
import { table } from '../table.ts'
import { type ApiClient, type ClientFlags, openClient } from './api-client.ts'
import type { Environment } from './hosts.ts'

const urlOption = () =>
  new Option('--url <url>', 'the platform (default: the one logged in to last)').env('POSTERN_URL')
const namespaceOption = () =>
  new Option('-n, --namespace <name>', 'the namespace (default: the only one there is)').env('POSTERN_NAMESPACE')
export const jsonOption = () => new Option('--json', 'print what the platform answered, as JSON')
export const many = (flag: string, words: string, choices?: readonly string[]) =>
  new Option(flag, `${words}; repeatable`).argParser((value: string, previous?: readonly string[]) => {
    if (choices?.includes(value) === false) throw new InvalidArgumentError(`Allowed choices are ${choices.join(', ')}.`)
    return collect(value, previous)
  })

/** A command of a running platform. */
export const remote = (parent: Command, name: string, description: string) =>
  parent.command(name).description(description).addOption(urlOption()).addOption(jsonOption())
export const inNamespace = (parent: Command, name: string, description: string) =>
  remote(parent, name, description).addOption(namespaceOption())

/** The context that the action of a command gets. */
export interface CommandContext<Flags = unknown> extends ApiClient {
  readonly flags: ClientFlags & Flags
  readonly stdout: (text: string) => void
  readonly stderr: (text: string) => void
  /** Prints the body with `--json`, or else a sentence about it. */
  say(body: unknown, sentence: string): void
  /** Prints the body with `--json`, or else rows: a table on a terminal, elsewhere columns divided by tabs. */
  show(body: unknown, heading: readonly string[], rows: readonly (readonly unknown[])[]): void
  /** Prints the body as JSON that people read; on one line with `--json`. */
  print(body: unknown): void
}

/** Throws CommandError as `openClient` does. */
export function contextOf<Flags>(
  flags: ClientFlags & Flags,
  { stdout, stderr }: Context['terminal'],
  environment: Environment = process.env,
  key?: string,
): CommandContext<Flags> {
  const isJson = flags.json === true
  return {
    ...openClient(flags, environment, key),
    ...{ flags, stdout, stderr },
    say: (body, sentence) => stdout(`${isJson ? JSON.stringify(body) : sentence}\n`),
    show: (body, heading, rows) => stdout(isJson ? `${JSON.stringify(body)}\n` : columns(heading, rows)),
    print: (body) => stdout(`${JSON.stringify(body, null, isJson ? 0 : 2)}\n`),
  }
}

/** `heading`: for people only. */
function columns(heading: readonly string[], rows: readonly (readonly unknown[])[]): string {
  const texts = rows.map((row) => row.map((cell) => String(cell ?? '')))
  if (process.stdout.isTTY) return table([heading, ...texts])
  const line = (row: string[]) => row.map((cell) => escapeControlCharacters(cell.replaceAll('\t', ' '))).join('\t')
  return texts.map((row) => `${line(row)}\n`).join('')
}

/**
 * Makes the action of a command, from a function that gets its context and arguments. A number that this resolves with
 * is the exit code.
 */
export function actionsOf({ terminal, exit }: Context) {
  return <Flags, Given extends readonly unknown[]>(
    action: (context: CommandContext<Flags>, ...given: Given) => Promise<unknown>,
  ) =>
    async (...given: unknown[]) => {
      const [flags] = given.splice(-2)
      const code = await action(contextOf(flags as ClientFlags & Flags, terminal), ...(given as unknown as Given))
      if (typeof code === 'number') exit(code)
    }
}

export type Act = ReturnType<typeof actionsOf>

/** Asks on a terminal before what cannot be undone; elsewhere `--yes` must have been given. Throws CommandError. */
export async function confirmDeletion(question: string, { yes }: { readonly yes?: boolean }): Promise<void> {
  if (yes === true) return
  if (!process.stdin.isTTY) throw new CommandError('this cannot be undone: confirm it with --yes', 2)
  const reader = createInterface({ input: process.stdin, output: process.stderr })
  const answer = await reader.question(`${question} [y/N] `)
  reader.close()
  if (!/^y(es)?$/i.test(answer.trim())) throw new CommandError('nothing was deleted')
}
