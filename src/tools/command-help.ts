/** Tables of the commands and their flags, from the program's own definitions. */

import type { Argument, Command, Option } from 'commander'
import { createProgram } from '../cli/program.ts'

const nothing = () => undefined
const program = createProgram({
  terminal: { stdout: nothing, stderr: nothing, isStdoutClosed: () => false },
  json: false,
  exit: nothing,
})

/** Flags of `serve`, with variables and defaults. */
export function settingsTable(): string {
  const serve = program.commands.find((command) => command.name() === 'serve')
  const rows = (serve?.options ?? []).map((option) => {
    const { flags, envVar } = option
    return `| ${code(flags)} | ${code(envVar)} | ${code(presetOf(option))} | ${cell(helpOf(option))} |`
  })
  return ['| Flag | Environment | Default | |', '|---|---|---|---|', ...rows].join('\n')
}

/** Every command with its arguments and flags. The flags of `serve` and `dev` are in a table of their own. */
export function commandReference(): string {
  return sectionsOf(program).join('\n\n')
}

function sectionsOf(group: Command, above = ''): string[] {
  return group
    .createHelp()
    .visibleCommands(group)
    .filter((command) => command.name() !== 'help')
    .flatMap((command) => {
      const path = `${above}${command.name()}`
      return command.commands.length > 0 ? sectionsOf(command, `${path} `) : [commandSection(path, command)]
    })
}

function commandSection(path: string, command: Command): string {
  const options = ['serve', 'dev'].includes(path) ? [] : command.options.filter(({ hidden }) => !hidden)
  const { registeredArguments } = command
  const rows = [
    ...registeredArguments.filter(({ description }) => description !== '').map((one) => row(one.name(), one)),
    ...options.map((one) => row(one.flags, one)),
  ]
  const table = rows.length > 0 ? ['', '| | Default | |', '|---|---|---|', ...rows] : []
  const usage = `postern ${path} ${command.usage().replace('[options]', '').trim()}`.trim()
  return [`### ${path}`, '', `${code(usage)}: ${command.description()}.`, ...table].join('\n')
}

function row(term: string, one: Argument | Option): string {
  return `| ${code(term)} | ${code(presetOf(one))} | ${cell(helpOf(one))} |`
}

/** A default computed at run time is part of the description. */
const presetInWords = / \(default: ([^)]*)\)/

/** The description, with the values there are. */
function helpOf({ description, argChoices }: { description: string; argChoices?: string[] | undefined }): string {
  return argChoices === undefined ? description : `${description}: ${argChoices.join(', ')}`
}

function presetOf({ defaultValue, defaultValueDescription, description }: Argument | Option): string | undefined {
  // For a flag such as --no-public-upstream, the default is the opposite of the flag: omit it.
  const preset = typeof defaultValue === 'boolean' ? undefined : defaultValue
  return defaultValueDescription ?? preset ?? presetInWords.exec(description)?.[1]
}

function code(text: string | undefined): string {
  return text === undefined ? '' : `\`${text}\``
}

function cell(description: string): string {
  return description.replace(presetInWords, '').replaceAll('|', '\\|').replaceAll('<', '&lt;')
}
