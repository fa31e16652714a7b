/**
 * `postern completions SHELL`: prints a completion script, generated from the commands and flags themselves. It does
 * not start the executable at each press of a key, so it knows no ids; it follows the line word by word, as far as it
 * has come.
 */

import type { Command, Option } from 'commander'
import { CommandError } from '../errors.ts'
import type { Terminal } from './terminal.ts'

/** A command with its visible subcommands and flags. `path`: the full command, `postern keys create`. */
type Place = ReturnType<typeof placesOf>[number]

/** Prints the script for a shell. Throws CommandError 2 for an unknown shell. */
export function completions(program: Command, shell: string, terminal: Terminal): void {
  const write = { bash, zsh, fish }[shell]
  if (write === undefined) throw new CommandError(`${shell}: there are completions for bash, zsh and fish`, 2)
  terminal.stdout(write(placesOf(program, program.name())))
}

/** The command and everything below it, visible ones only. The program itself comes first. */
function placesOf(command: Command, path: string): { path: string; commands: Command[]; flags: Option[] }[] {
  const help = command.createHelp()
  const commands = help.visibleCommands(command)
  const here = { path, commands, flags: help.visibleOptions(command) }
  return [here, ...commands.flatMap((one) => placesOf(one, `${path} ${one.name()}`))]
}

/** All commands, as a shell pattern. Each script appends one word at a time while the result is a command. */
const pathsOf = (places: readonly Place[], between: string) =>
  places.flatMap(({ path }, index) => (index === 0 ? [] : [`"${path}"`])).join(between)
/** The loop of bash and zsh that does so. */
const following = (words: string, places: readonly Place[]) => `for word in ${words}; do
    case "$place $word" in
      ${pathsOf(places, ' | ')}) place="$place $word" ;;
    esac
  done`
/** A shell pattern of the flags after which a value is expected, which is completed as a file name. Each has a name. */
const valueFlags = (places: readonly Place[]) =>
  [...new Set(places.flatMap(({ flags }) => flags.filter(takesValue).map(({ long }) => long)))].join(' | ')

const takesValue = ({ required, optional }: Option) => required || optional

/** Words alone: bash shows no descriptions. */
function bash(places: readonly Place[]): string {
  const words = ({ path, commands, flags }: Place) =>
    `    "${path}") commands="${commands.map((one) => one.name()).join(' ')}" flags="${flags.map(({ long }) => long).join(' ')}" ;;`
  return `# Completions of postern for bash: source <(postern completions bash)
_postern() {
  local current="\${COMP_WORDS[COMP_CWORD]}" place=postern word commands= flags=
  COMPREPLY=()
  ${following(`"\${COMP_WORDS[@]:1:COMP_CWORD-1}"`, places)}
  # After a flag that takes a value, file names.
  case "\${COMP_WORDS[COMP_CWORD-1]}" in ${valueFlags(places)}) return ;; esac
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
  const item = (name: string | undefined, description: string) => quote(`${name}:${description.replaceAll(':', '\\:')}`)
  const commandItems = (all: readonly Command[]) => all.map((one) => item(one.name(), one.description())).join(' ')
  const flagItems = (all: readonly Option[]) => all.map(({ long, description }) => item(long, description)).join(' ')
  return `#compdef postern
# Completions of postern for zsh: a file called _postern in a folder of $fpath.
_postern() {
  local place=postern word
  local -a commands flags
  ${following(`"\${words[@]:1:$((CURRENT - 2))}"`, places)}
  case "\${words[CURRENT-1]}" in ${valueFlags(places)}) _files; return ;; esac
  case "$place" in
${places.map(({ path, commands, flags }) => `    "${path}") commands=(${commandItems(commands)}) flags=(${flagItems(flags)}) ;;`).join('\n')}
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
      ...commands.map((one) => `${here} -f -a ${one.name()} -d ${quote(one.description())}`),
      ...flags.map((flag) => {
        const letter = flag.short === undefined ? '' : ` -s ${flag.short.slice(1)}`
        return `${here}${letter} -l ${flag.long?.slice(2)}${takesValue(flag) ? ' -r' : ''} -d ${quote(flag.description)}`
      }),
    ]
  })
  return `# Completions of postern for fish: ~/.config/fish/completions/postern.fish
function __postern_at --description 'Is this the command that is being typed?'
  set -l place postern
  for word in (commandline -opc)[2..-1]
    switch "$place $word"
      case ${pathsOf(places, ' ')}
        set place "$place $word"
    end
  end
  test "$place" = "$argv"
end
${lines.join('\n')}
`
}

function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
