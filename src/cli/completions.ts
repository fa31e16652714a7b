/**
 * `postern completions SHELL`: prints a completion script, generated from the commands and flags themselves.
 *
 * The scripts are static. They do not start the executable at each press of a key, so they know no ids of keys or
 * grants; all that they need to know is how far the line has come, which they follow word by word.
 */

import type { Command, Option } from 'commander'
import { CommandError } from '../errors.ts'
import type { Terminal } from './terminal.ts'

/** A command with its subcommands and flags. */
interface Place {
  /** The full command: `postern keys create`. */
  readonly path: string
  readonly commands: readonly Named[]
  readonly flags: readonly Flag[]
}

interface Named {
  readonly name: string
  readonly description: string
}

interface Flag extends Named {
  /** The short form with its dash: `-h`. */
  readonly short: string | undefined
  readonly takesValue: boolean
}

/** Prints the script for a shell. Throws CommandError 2 for an unknown shell. */
export function completions(program: Command, shell: string, terminal: Terminal): void {
  const write = { bash, zsh, fish }[shell]
  if (write === undefined) throw new CommandError(`${shell}: there are completions for bash, zsh and fish`, 2)
  terminal.stdout(write(placesOf(program, program.name())))
}

/** The command and everything below it, visible ones only. The program itself comes first. */
function placesOf(command: Command, path: string): Place[] {
  const help = command.createHelp()
  const commands = help.visibleCommands(command)
  const here = {
    path,
    commands: commands.map((one) => ({ name: one.name(), description: one.description() })),
    flags: help.visibleOptions(command).map(flagOf),
  }
  return [here, ...commands.flatMap((one) => placesOf(one, `${path} ${one.name()}`))]
}

/** A flag without a long form does not occur: the house names each flag. */
function flagOf({ long, short, description, required, optional }: Option): Flag {
  return { name: long ?? '', short, description, takesValue: required || optional }
}

/** A shell pattern of all commands. Each script appends one word at a time while the result is a command. */
const isPlace = (places: readonly Place[]) =>
  places
    .slice(1)
    .map(({ path }) => `"${path}"`)
    .join(' | ')
/** Flags after which a value is expected, which is completed as a file name. */
const valueFlags = (places: readonly Place[]) => [
  ...new Set(places.flatMap(({ flags }) => flags.filter(({ takesValue }) => takesValue).map(({ name }) => name))),
]

/** Words alone: bash shows no descriptions. */
function bash(places: readonly Place[]): string {
  const words = ({ path, commands, flags }: Place) =>
    `    "${path}") commands="${commands.map(({ name }) => name).join(' ')}" flags="${flags.map(({ name }) => name).join(' ')}" ;;`
  return `# Completions of postern for bash: source <(postern completions bash)
_postern() {
  local current="\${COMP_WORDS[COMP_CWORD]}" place=postern word commands= flags=
  COMPREPLY=()
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$place $word" in
      ${isPlace(places)}) place="$place $word" ;;
    esac
  done
  # After a flag that takes a value, file names.
  case "\${COMP_WORDS[COMP_CWORD-1]}" in ${valueFlags(places).join(' | ')}) return ;; esac
  case "$place" in
${places.map(words).join('\n')}
  esac
  if [[ $current == -* ]]; then commands=$flags; fi
  COMPREPLY=($(compgen -W "$commands" -- "$current"))
}
complete -o default -F _postern postern
`
}

/** Zsh shows descriptions. A colon ends the name in its lists, so those of descriptions are escaped. */
function zsh(places: readonly Place[]): string {
  const items = (all: readonly Named[]) =>
    all.map(({ name, description }) => quote(`${name}:${description.replaceAll(':', '\\:')}`)).join(' ')
  return `#compdef postern
# Completions of postern for zsh: a file called _postern in a folder of $fpath.
_postern() {
  local place=postern word
  local -a commands flags
  for word in "\${words[@]:1:$((CURRENT - 2))}"; do
    case "$place $word" in
      ${isPlace(places)}) place="$place $word" ;;
    esac
  done
  case "\${words[CURRENT-1]}" in ${valueFlags(places).join(' | ')}) _files; return ;; esac
  case "$place" in
${places.map(({ path, commands, flags }) => `    "${path}") commands=(${items(commands)}) flags=(${items(flags)}) ;;`).join('\n')}
  esac
  if [[ $PREFIX == -* ]]; then _describe -o flag flags
  elif (( $#commands )); then _describe command commands
  else _files; fi
}
if [[ $funcstack[1] == _postern ]]; then _postern "$@"; else compdef _postern postern; fi
`
}

/** Fish wants one `complete` for each word, with a condition that says where it applies. */
function fish(places: readonly Place[]): string {
  const lines = places.flatMap(({ path, commands, flags }) => {
    const here = `complete -c postern -n '__postern_at ${path}'`
    return [
      ...commands.map(({ name, description }) => `${here} -f -a ${name} -d ${quote(description)}`),
      ...flags.map(({ name, short, description, takesValue }) => {
        const letter = short === undefined ? '' : ` -s ${short.slice(1)}`
        return `${here}${letter} -l ${name.slice(2)}${takesValue ? ' -r' : ''} -d ${quote(description)}`
      }),
    ]
  })
  return `# Completions of postern for fish: ~/.config/fish/completions/postern.fish
function __postern_at --description 'Is this the command that is being typed?'
  set -l place postern
  for word in (commandline -opc)[2..-1]
    switch "$place $word"
      case ${places
        .slice(1)
        .map(({ path }) => `'${path}'`)
        .join(' ')}
        set place "$place $word"
    end
  end
  test "$place" = "$argv"
end
${lines.join('\n')}
`
}

/** Quotes text as one word for the shell. */
function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
