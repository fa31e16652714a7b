/** The entry point of the command line. Exit codes: 0 success, 1 the command failed, 2 wrong usage. */

import { type Command, CommanderError } from 'commander'
import { commandsNamed, isNamed } from './cli/options.ts'
import { createProgram } from './cli/program.ts'
import { StandardOutput } from './cli/terminal.ts'
import { CommandError } from './errors.ts'
import { StoreError } from './storage/store.ts'

/** All output of commands. */
const terminal = new StandardOutput()

async function main(argv: readonly string[]): Promise<number> {
  let code = 0
  const json = argv.includes('--json')
  const postern = createProgram({
    terminal,
    json,
    exit(given) {
      code = given
    },
  })
  try {
    const group = groupOf(argv, postern)
    if (group !== undefined) {
      group.outputHelp()
      return 0
    }
    requireCommandFirst(argv, postern)
    requireMeant(argv, postern)
    await postern.parseAsync(argv, { from: 'user' })
    return code
  } catch (error) {
    // Help that was requested is a success.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
    if (error instanceof CommandError) {
      terminal.stderr(`${json ? JSON.stringify(error) : error.message}\n`)
      return error.exitCode
    }
    const message = error instanceof Error ? error.message : String(error)
    // That of a StoreError is for the operator too.
    terminal.stderr(error instanceof StoreError ? `${message}\n` : `postern failed: ${message}\n`)
    return 1
  }
}

/** The command that `argv` ends at, if it is one that only has others: its help says which. */
function groupOf(argv: readonly string[], postern: Command): Command | undefined {
  const path = commandsNamed(argv, postern)
  const last = path.at(-1) ?? postern
  return path.length === argv.length && last.commands.length > 0 ? last : undefined
}

/** Throws CommandError for a flag of a command that was given before it, and says where it belongs. */
function requireCommandFirst(argv: readonly string[], postern: Command): void {
  const { commands, options } = postern
  const [flag = ''] = argv
  const name = flag.replace(/=.*/, '')
  if (!flag.startsWith('-') || flag === '-h' || flag === '--help') return
  if (options.some(({ short, long }) => short === name || long === name)) return
  const command = argv.find((word) => commands.some((one) => isNamed(one, word)))
  if (command === undefined) return
  const names = commandsNamed(argv.slice(argv.indexOf(command)), postern).map((one) => one.name())
  throw new CommandError(`flags come after the command: \`postern ${names.join(' ')} ${flag} …\``, 2)
}

/** Throws CommandError where `serve` and `server`, a letter apart, were probably taken for each other. */
function requireMeant([command, next = '']: readonly string[], { commands }: Command): void {
  const named = (name: string) => commands.find((one) => one.name() === name)
  const isFlagOfServe = named('serve')?.options.some(({ long }) => long === next.replace(/=.*/, ''))
  const isOfServer = named('server')?.commands.some((one) => one.name() === next)
  if (command === 'server' && isFlagOfServe)
    throw new CommandError(`\`postern server\` is for MCP servers: did you mean \`postern serve ${next} …\`?`, 2)
  if (command === 'serve' && isOfServer)
    throw new CommandError(`\`postern serve\` starts postern: did you mean \`postern server ${next} …\`?`, 2)
}

// No proxy of the environment gets a request to this machine, which may have a key in it.
process.env['no_proxy'] = [process.env['no_proxy'] ?? process.env['NO_PROXY'], 'localhost', '127.0.0.1', '::1', '[::1]']
  .filter(Boolean)
  .join(',')
const argv = process.argv.slice(2)
const isServer = ['serve', 'dev'].includes(argv[0] ?? '')
process.exitCode = 0
const code = await main(argv)
// The reader of a server's log may be stuck or gone, so a server waits for one second only. A command waits until its
// output has been read.
const problem = await terminal.drained(isServer ? 1000 : 2 ** 31 - 1)
if (problem === undefined || isServer) process.exit(code)
process.stderr.write(`cannot write: ${problem}\n`)
process.exit(code || 1)
