/** `postern completions`: what a shell then offers is what the help says, in every shell that is on this machine. */

import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { run, workplace } from '../support/executable.ts'
import { isHere } from '../support/needs.ts'

/** Asks a shell what may follow these words, the last of which is being typed. The script is in the file `script`. */
const asking: Readonly<Record<'bash' | 'zsh' | 'fish', (words: readonly string[]) => string>> = {
  bash: (words) => `source ./script; COMP_WORDS=(${listed(words)}); COMP_CWORD=${words.length - 1}; _postern
    printf '%s\\n' "\${COMPREPLY[@]}"`,
  // What zsh itself would bring is stood in for: the lists are given to it by name.
  zsh: (words) => `compdef() {}; _files() {}; _describe() { print -l -- \${\${(P)@[-1]}%%:*} }; source ./script
    words=(${listed(words)}); CURRENT=${words.length}; PREFIX="$words[-1]"; _postern`,
  fish: (words) => `source ./script; complete -C ${listed([words.join(' ')])} | string replace -r '\\t.*' ''`,
}
const listed = (words: readonly string[]) => words.map((word) => `'${word}'`).join(' ')

/** What a help page lists, in its order. */
function inHelp(page: string, heading: string): string[] {
  const [, part = ''] = page.split(`${heading}:\n`)
  return [...(part.split('\n\n')[0] ?? '').matchAll(/^ {2}(?:-\w, )?(--[a-z-]+|[a-z][a-z-]*)/gm)].map(
    ([, name = '']) => name,
  )
}

const helps = new Map<string, Promise<string>>()

/** The help page of a command, asked once for all shells. */
function helpOf(path: readonly string[]): Promise<string> {
  const help = helps.get(path.join(' ')) ?? printed(['help', ...path])
  helps.set(path.join(' '), help)
  return help
}

async function printed(args: readonly string[]): Promise<string> {
  using place = workplace()
  return (await run(place, args)).stdout
}

for (const shell of ['bash', 'zsh', 'fish'] as const) {
  const ask = asking[shell]
  test.if(isHere(shell))(
    `${shell} offers every command and every flag that the help shows (needs ${shell})`,
    async () => {
      using place = workplace()
      const script = await run(place, ['completions', shell])
      expect(script).toMatchObject({ code: 0, stderr: '' })
      writeFileSync(join(place.folder, 'script'), script.stdout)
      const offered = (...words: string[]): string[] => {
        const { stdout, stderr } = Bun.spawnSync([shell, '-c', ask(words)], { cwd: place.folder })
        expect(stderr.toString()).toBe('')
        // Of files, fish offers some by itself.
        return stdout
          .toString()
          .split('\n')
          .filter((word) => word !== '' && word !== 'script' && !word.endsWith('/'))
      }
      const expectAsInHelp = async (path: readonly string[]): Promise<void> => {
        const stdout = await helpOf(path)
        const commands = inHelp(stdout, 'Commands')
        const flags = inHelp(stdout, 'Options')
        expect(flags).toContain('--help')
        expect({ path, offered: offered('postern', ...path, '').sort() }).toEqual({
          path,
          offered: commands.toSorted(),
        })
        const offeredFlags = offered('postern', ...path, '--').filter((word) => word.startsWith('--'))
        expect({ path, offered: offeredFlags.sort() }).toEqual({ path, offered: flags.toSorted() })
        for (const command of commands) if (command !== 'help') await expectAsInHelp([...path, command])
      }
      await expectAsInHelp([])
      expect(offered('postern', 'ke')).toEqual(shell === 'zsh' ? expect.arrayContaining(['keys']) : ['keys'])
      expect(offered('postern', 'keys', 'list', '--data', '')).toEqual([])
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
