/** The parts that several commands share: their flags above all. */

import { type Command, Option } from 'commander'
import { CommandError } from '../errors.ts'
import type { Terminal } from './terminal.ts'

/** The parts of its process that a command uses. Tests pass their own. */
export interface Context {
  readonly terminal: Terminal
  /** Whether errors are printed as JSON. */
  readonly json: boolean
  /** Sets the exit code of a command that resolves. A thrown CommandError has its own. */
  readonly exit: (code: number) => void
}

/** A command with subcommands, such as `keys`. */
export function group(postern: Command, name: string): Command {
  return postern.command(name).helpCommand('help [command]', 'print the help of a command')
}

/** `--data`, with its environment variable and default. */
export const dataOption = (words = 'data folder; created if missing') =>
  new Option('--data <dir>', words).env('POSTERN_DATA').default('./postern-data')

/** A password in a file, because command lines can be read by all users of a machine. */
export const storePasswordOption = (words: string) =>
  new Option('--store-password-file <file>', words).env('POSTERN_STORE_PASSWORD_FILE')

/** The secret that belongs to a store in a database. */
export const instanceSecretOption = (words: string) =>
  new Option('--instance-secret-file <file>', words).env('POSTERN_INSTANCE_SECRET_FILE')

const storeOption = (words: string) => new Option('--store <url>', words).env('POSTERN_STORE')

/** A command on the data folder alone, which refuses a database by itself. */
export function onFolder(
  parent: Command,
  name: string,
  description: string,
  data = dataOption('data folder'),
): Command {
  return parent.command(name).description(description).addOption(data).addOption(storeOption('refused').hideHelp())
}

/** A command on the data folder, or on a database in its place. */
export function onData(parent: Command, name: string, description: string, data = dataOption('data folder')): Command {
  return parent
    .command(name)
    .description(description)
    .addOption(data)
    .addOption(storeOption('store in PostgreSQL: postgres://user@host:5432/database (default: the data folder)'))
    .addOption(storePasswordOption('file with the password of the user in the URL of --store'))
    .addOption(instanceSecretOption('file with the instance secret (default: in the data folder)'))
}

/**
 * `onData` for a command that makes a missing folder if `--data` names it (`openNamedDataFolder`). `isNamed` among its
 * flags: whether the operator gave `--data`.
 */
export function onNamedData(parent: Command, name: string, description: string): Command {
  const data = dataOption('data folder; created if you name it here and it is missing')
  return onData(parent, name, description, data).hook('preAction', (command) => {
    command.setOptionValue('isNamed', command.getOptionValueSource('data') !== 'default')
  })
}

/** Another name of a command, which the contract has; help does not show it. `words`: those of the command. */
export function alsoNamed(postern: Command, name: string, words: readonly string[]): void {
  const command = postern
    .command(name, { hidden: true })
    .helpOption(false)
    .allowUnknownOption()
    .argument('[words...]', `as for \`postern ${words.join(' ')}\``)
    .action(async () => {
      await postern.parseAsync([...words, ...command.args], { from: 'user' })
    })
  command.outputHelp = () => commandsNamed(words, postern).at(-1)?.outputHelp()
}

/** Whether a word is the name of a command, or its other name. */
export const isNamed = (command: Command, word = '') => command.name() === word || command.aliases().includes(word)

/** The commands that words name, each below the one before, as far as there are such. */
export function commandsNamed([word, ...rest]: readonly string[], { commands }: Command): Command[] {
  const named = commands.find((one) => isNamed(one, word))
  return named === undefined ? [] : [named, ...commandsNamed(rest, named)]
}

/** The id of a key as an argument. Throws CommandError for the key itself, which must be neither sent nor shown. */
export function keyId(value: string): string {
  if (value.startsWith('pst_')) throw new CommandError('that is a key: name its id, which `postern keys list` shows', 2)
  return value
}

/** Collects the values of a repeatable flag. */
export const collect = (value: string, previous: readonly string[] = []) => [...previous, value]
