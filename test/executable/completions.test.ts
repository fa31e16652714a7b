/** `postern completions`: what a shell then offers is what the help says, in every shell that is on this machine. */

import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createProgram } from '../../src/cli/program.ts'
import { run, workplace } from '../support/executable.ts'
import { isHere } from '../support/needs.ts'

/**
 * How a shell prints what may follow these words, the last of which is being typed. The script is in the file `script`,
 * and is loaded before.
 */
const asking: Readonly<Record<'bash' | 'zsh' | 'fish', (words: readonly string[]) => string>> = {
  bash: (words) => `COMP_WORDS=(${listed(words)}); COMP_CWORD=${words.length - 1}; COMPREPLY=(); _postern
    printf '%s\\n' "\${COMPREPLY[@]}"`,
  zsh: (words) => `words=(${listed(words)}); CURRENT=${words.length}; PREFIX="$words[-1]"; _postern`,
  fish: (words) => `complete -C ${listed([words.join(' ')])} | string replace -r '\\t.*' ''`,
}
/** What zsh itself would bring is stood in for: the lists are given to it by name. */
const before = {
  bash: '',
  zsh: `compdef() {}; _files() {}; _describe() { print -l -- \${\${(P)@[-1]}%%:*} }`,
  fish: '',
}
/** Between the answers to two questions. */
const mark = '-----'
const listed = (words: readonly string[]) => words.map((word) => `'${word}'`).join(' ')

/** The flags or the commands that a help page lists, in its order. Both are below several headings. */
function inHelp(page: string, kind: 'Options' | 'Commands'): string[] {
  const parts = page.split('\n\n').map((part) => part.split('\n'))
  const isList = (heading = '') => /^\S.*:$/.test(heading) && !/^(?:Arguments|Examples?):$/.test(heading)
  return parts
    .filter(([heading]) => isList(heading))
    .flatMap((lines) => [...lines.join('\n').matchAll(/^ {2}(?:-\w, )?(--[a-z-]+|[a-z][a-z-]*)/gm)])
    .map(([, name = '']) => name)
    .filter((name) => name.startsWith('--') === (kind === 'Options'))
}

/** What the executable prints for `help`; in this process, because there are some eighty commands. */
const program = createProgram({
  terminal: { stdout() {}, stderr() {}, isStdoutClosed: () => false },
  json: false,
  exit() {},
})

function helpOf(path: readonly string[]): string {
  let command = program
  for (const word of path) command = command.commands.find((one) => one.name() === word) ?? command
  return command.helpInformation()
}

/** Every command with all that are below it, each by the words of its path. */
function commandsFrom(path: readonly string[]): (readonly string[])[] {
  const below = inHelp(helpOf(path), 'Commands').filter((command) => command !== 'help')
  return [path, ...below.flatMap((command) => commandsFrom([...path, command]))]
}

for (const shell of ['bash', 'zsh', 'fish'] as const) {
  test.if(isHere(shell))(
    `${shell} offers every command and every flag that the help shows (needs ${shell})`,
    async () => {
      using place = workplace()
      const script = await run(place, ['completions', shell])
      expect(script).toMatchObject({ code: 0, stderr: '' })
      writeFileSync(join(place.folder, 'script'), script.stdout)
      /** What is offered for each of these words, asked in one shell. */
      const offered = (questions: readonly (readonly string[])[]): string[][] => {
        const asked = questions.map((words) => `${asking[shell](words)}\necho '${mark}'`)
        const text = [before[shell], 'source ./script', ...asked].join('\n')
        const { stdout, stderr } = Bun.spawnSync([shell, '-c', text], { cwd: place.folder })
        expect(stderr.toString()).toBe('')
        const answers = stdout.toString().split(`${mark}\n`).slice(0, -1)
        expect(answers).toHaveLength(questions.length)
        // Of files, fish offers some by itself.
        return answers.map((answer) =>
          answer.split('\n').filter((word) => word !== '' && word !== 'script' && !word.endsWith('/')),
        )
      }
      const paths = commandsFrom([])
      expect(paths.length).toBeGreaterThan(40)
      // Asked of those that have some, and of one that has none: fish looks for 40 ms.
      const groups = [...paths.filter((path) => inHelp(helpOf(path), 'Commands').length > 0), ['serve']]
      const commands = offered(groups.map((path) => ['postern', ...path, '']))
      for (const [index, path] of groups.entries())
        expect({ path, commands: commands[index]?.sort() }).toEqual({
          path,
          commands: inHelp(helpOf(path), 'Commands').sort(),
        })
      const flags = offered(paths.map((path) => ['postern', ...path, '--']))
      for (const [index, path] of paths.entries()) {
        const shown = inHelp(helpOf(path), 'Options').sort()
        expect(shown).toContain('--help')
        const given = flags[index]?.filter((word) => word.startsWith('--')).sort()
        expect({ path, flags: given }).toEqual({ path, flags: shown })
      }
      const [begun, value] = offered([
        ['postern', 'ke'],
        ['postern', 'keys', 'list', '--data', ''],
      ])
      expect(begun).toEqual(shell === 'zsh' ? expect.arrayContaining(['keys']) : ['keys'])
      expect(value).toEqual([])
    },
  )
}

test('a shell that is none', async () => {
  using place = workplace()
  expect(await run(place, ['completions', 'tcsh'])).toEqual({
    code: 2,
    stdout: '',
    stderr: 'tcsh: there are completions for bash, zsh and fish\n',
  })
})
