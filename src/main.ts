/** The command line: runs a command and says how it ended. Exit codes: 0 fine, 1 the work failed, 2 wrong usage. */

import { type Command, CommanderError } from 'commander'
import { createProgram } from './cli/program.ts'
import { drained, write } from './cli/standard-output.ts'
import { CommandError } from './errors.ts'
import { escapeControlCharactersInLines } from './ops/escape-control.ts'

/** All that commands say goes through here, and no terminal acts on what names, files and arguments have in them. */
const terminal = {
  stdout: (text: string) => write('stdout', escapeControlCharactersInLines(text)),
  stderr: (text: string) => write('stderr', escapeControlCharactersInLines(text)),
}

async function main(argv: readonly string[]): Promise<number> {
  let code = 0
  const postern = createProgram({
    terminal,
    exit(given) {
      code = given
    },
  })
  try {
    requireCommandFirst(argv, postern)
    await postern.parseAsync(argv, { from: 'user' })
    return code
  } catch (error) {
    if (error instanceof CommanderError)
      return error.exitCode === 0 || error.code === 'commander.help' ? helpCode(error) : 2
    if (error instanceof CommandError) {
      terminal.stderr(`${error.message}\n`)
      return error.exitCode
    }
    const message = error instanceof Error ? error.message : String(error)
    terminal.stderr(`postern failed: ${message}\n`)
    return 1
  }
}

/** Other programs take flags before the command. Throws CommandError that says where they go here. */
function requireCommandFirst(argv: readonly string[], { commands, options }: Command): void {
  const [flag = ''] = argv
  const name = flag.replace(/=.*/, '')
  if (!flag.startsWith('-') || flag === '-h' || flag === '--help') return
  if (options.some(({ short, long }) => short === name || long === name)) return
  const command = argv.find((word) => commands.some((one) => one.name() === word))
  if (command === undefined) return
  throw new CommandError(`flags come after the command: \`postern ${command} ${flag} …\``, 2)
}

/** Help that was asked for is fine; help that is shown because no command was given is wrong usage. */
function helpCode(error: CommanderError): number {
  return error.code === 'commander.help' && error.exitCode !== 0 ? 2 : 0
}

const argv = process.argv.slice(2)
const isServer = ['serve', 'dev'].includes(argv[0] ?? '')
process.exitCode = 0
const code = await main(argv)
// Who reads the log of a server may have stopped, or closed the terminal; a command waits for as long as its reader
// takes.
const problem = await drained(isServer ? 1000 : 2 ** 31 - 1)
if (problem === undefined || isServer) process.exit(code)
process.stderr.write(`cannot write: ${problem}\n`)
process.exit(code || 1)
