/** The flags that commands of a running platform share, and what their actions get. */

import { existsSync } from 'node:fs'
import { Command, InvalidArgumentError, Option } from 'commander'
import { CommandError } from '../../errors.ts'
import { escapeControlCharacters, oneLine } from '../../ops/escape-control.ts'
import { type Context, collect } from '../options.ts'
import { table } from '../table.ts'
import type { Terminal } from '../terminal.ts'
import { type ClientFlags, openClient } from './api-client.ts'
import { readHosts } from './hosts.ts'

const urlOption = () =>
  new Option('--url <url>', 'base URL of postern (default: where you last logged in)').env('POSTERN_URL')
const namespaceOption = () =>
  new Option(
    '-n, --namespace <name>',
    'namespace (default: the only one that you have access to; with several, give one)',
  ).env('POSTERN_NAMESPACE')
export const jsonOption = () => new Option('--json', 'print what postern answered, as JSON')
export const many = (flag: string, words: string, choices?: readonly string[]) =>
  new Option(flag, `${words}; repeatable`).argParser((value: string, previous?: readonly string[]) => {
    if (choices?.includes(value) === false) throw new InvalidArgumentError(`Allowed choices are ${choices.join(', ')}.`)
    return collect(value, previous)
  })

/** Makes `remote`, which adds a command of a running platform, and `inNamespace`, for one about a namespace. */
export function remoteCommands({ terminal, exit }: Context) {
  class RemoteCommand extends Command {
    /** As `action`, with the context and the arguments. A number that it resolves with is the exit code. */
    run<Flags, Given extends readonly unknown[]>(
      action: (context: CommandContext<Flags>, ...given: Given) => Promise<unknown>,
    ): this {
      return this.action(async (...given: unknown[]) => {
        const [flags] = given.splice(-2)
        const code = await action(contextOf(flags as ClientFlags & Flags, terminal), ...(given as unknown as Given))
        if (typeof code === 'number') exit(code)
      })
    }
  }
  const remote = (parent: Command, name: string, description: string) => {
    const command = new RemoteCommand(name).copyInheritedSettings(parent)
    parent.addCommand(command)
    return command.description(description).addOption(urlOption()).addOption(jsonOption())
  }
  const inNamespace = (parent: Command, name: string, description: string) =>
    remote(parent, name, description).addOption(namespaceOption())
  return { remote, inNamespace }
}

export type RemoteCommands = ReturnType<typeof remoteCommands>

/**
 * Runs a command that was made for the server's machine over HTTP too: `--data` and `--store` choose the first, `--url`
 * and a login the second; without any, it is the default data folder. A number that it resolves with is the exit code.
 */
export function either<Name extends string, Flags>(
  command: Command,
  { terminal, exit }: Context,
  name: Name,
  { onMachine, overHttp }: Ways<Name, Flags>,
): Command {
  const hasJson = command.options.some(({ long }) => long === '--json')
  command.addOption(urlOption())
  if (!hasJson) command.addOption(jsonOption())
  return command.action(async (...given: unknown[]) => {
    const [flags] = given.splice(-2) as [ClientFlags & Flags, Command]
    const names = given as never[]
    const isRemote = isOverHttp(command)
    if (!isRemote && flags.json === true && !hasJson)
      throw new CommandError('--json: works only over HTTP: name the base URL with --url, or log in', 2)
    try {
      const code = isRemote
        ? await (await overHttp())[name](contextOf(flags, terminal), ...names)
        : await (await onMachine())[name](flags as never, terminal, ...names)
      if (typeof code === 'number') exit(code)
    } catch (thrown) {
      if (!(thrown instanceof CommandError)) throw thrown
      throw isRemote ? orOnFolder(thrown, command) : orOverHttp(thrown, command)
    }
  })
}

interface Ways<Name extends string, Flags> {
  readonly onMachine: Loading<Name, (flags: never, terminal: Terminal, ...given: never[]) => Promise<unknown>>
  readonly overHttp: Loading<Name, (context: CommandContext<Flags>, ...given: never[]) => Promise<unknown>>
}

/** Imports the module that has the function of this name. */
type Loading<Name extends string, Run> = () => Promise<{ readonly [Key in Name]: Run }>

function isOverHttp(command: Command): boolean {
  const source = (name: string) => command.getOptionValueSource(name)
  if (source('url') === 'cli') return true
  if (source('data') !== 'default' || source('store') !== undefined) return false
  return source('url') !== undefined || readHosts(process.env).current !== undefined
}

/** The error; where the default folder is not there, it says how to work over HTTP. Not so for a mistake of usage. */
function orOverHttp(error: CommandError, command: Command): CommandError {
  const isDefault = command.getOptionValueSource('data') === 'default'
  if (error.exitCode === 2 || !isDefault || existsSync(command.opts()['data'])) return error
  return error.with(`${error.message}; or work over HTTP, after \`postern login URL\``)
}

/** The error; where the platform refuses or does not answer, it says how to work on the folder here. */
function orOnFolder(error: CommandError, command: Command): CommandError {
  const { data } = command.opts()
  // A proxy answers in its place.
  const isAway = error.code === 'unreachable' || (error.status ?? 0) >= 502
  if ((!isAway && error.status !== 403) || !existsSync(data)) return error
  return error.with(`${error.message}; to work on the data folder of this machine, add --data ${data}`)
}

/** The context of a command. `key`: instead of the kept one. Throws CommandError as `openClient` does. */
export function contextOf<Flags>(
  flags: ClientFlags & Flags,
  { stdout, stderr, isStdoutClosed }: Terminal,
  key?: string,
) {
  const isJson = flags.json === true
  return {
    ...openClient(flags, process.env, key),
    ...{ flags, stdout, stderr, isStdoutClosed },
    /** Prints the body with `--json`, or else a sentence about it. */
    say: (body: unknown, sentence: string) => stdout(`${isJson ? JSON.stringify(body) : oneLine(sentence)}\n`),
    /** Prints the body with `--json`, or else rows: a table on a terminal, elsewhere columns divided by tabs. */
    show: (body: unknown, heading: readonly string[], rows: readonly (readonly unknown[])[]) => {
      if (rows.length === 0 && !isJson && process.stdout.isTTY) return stderr('there is nothing to list\n')
      return stdout(isJson ? `${JSON.stringify(body)}\n` : columns(heading, rows))
    },
    /** Prints the body as JSON that people read; on one line with `--json`. */
    print: (body: unknown) => stdout(`${JSON.stringify(body, null, isJson ? 0 : 2)}\n`),
  }
}

export type CommandContext<Flags = unknown> = ReturnType<typeof contextOf<Flags>>

/** `heading`: for people only; empty where rows follow others. */
function columns(heading: readonly string[], rows: readonly (readonly unknown[])[]): string {
  const texts = rows.map((row) => row.map((cell) => String(cell ?? '')))
  if (process.stdout.isTTY) return table(heading.length === 0 ? texts : [heading, ...texts])
  const line = (row: string[]) => row.map((cell) => escapeControlCharacters(cell.replaceAll('\t', ' '))).join('\t')
  return texts.map((row) => `${line(row)}\n`).join('')
}

/** Asks on a terminal before what cannot be undone; elsewhere `--yes` must have been given. Throws CommandError. */
export async function confirmDeletion(question: string, { yes }: { readonly yes?: boolean }): Promise<void> {
  if (yes === true) return
  if (!process.stdin.isTTY) throw new CommandError(`${question} Nothing was deleted: confirm it with --yes`, 2)
  const { createInterface } = await import('node:readline/promises')
  const reader = createInterface({ input: process.stdin, output: process.stderr })
  const answer = await reader.question(`${question} [y/N] `)
  reader.close()
  if (!/^y(es)?$/i.test(answer.trim())) throw new CommandError('nothing was deleted')
}
