import { expect, test } from 'bun:test'
import { recipeOf } from '../../src/model/recipe.ts'

const url = 'http://localhost:8787/connect/ada/mcp'
const names = ['ada', '-ada', 'my tools', "it's $HOME", '"; touch x; "', '`id`', 'a\\', '*', '', '日本']

test('a command of a recipe gives its client the chosen name as one word, whatever is in it', () => {
  for (const name of names)
    for (const client of ['claude-code', 'codex'] as const) {
      const { command = '' } = recipeOf(client, { base: 'http://localhost:8787', namespace: 'ada', url, name })
      const [program] = command.split(' ')
      const shell = Bun.spawnSync(['sh', '-c', `${program}() { printf '%s\\0' "$@"; }\n${command}`])
      const words = shell.stdout.toString().split('\0')
      expect(words, command).toContain(name)
      expect(words, command).toContain(url)
      expect(words.includes('--'), command).toBe(name.startsWith('-'))
    }
})
