/** `postern fixtures check`: what fails, what is only a warning, and what `--strict` makes of it. */

import { describe, expect, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createProgram } from '../../src/cli/program.ts'
import { CommandError } from '../../src/errors.ts'
import { type Ran, run, sampleFolder, workplace } from '../support/executable.ts'

const key = 'a-key-of-at-least-32-characters-0'
const server = (tool: object) => ({
  namespaces: [{ namespace: 'n', userId: 'eva' }],
  servers: [
    {
      qualifiedName: 'n/s',
      displayName: 'S',
      description: '',
      remote: true,
      connections: [],
      tools: [{ name: 't', inputSchema: { type: 'object' }, ...tool }],
    },
  ],
})
const connection = (mcpUrl: string, more: object = {}) => ({
  ...server({}),
  connections: [{ namespace: 'n', connectionId: 'c', mcpUrl, ...more }],
})
const closed = { type: 'object', properties: { recipeId: { type: 'string' } }, additionalProperties: false }

const rows: [what: string, files: Record<string, object | string>, line: RegExp | undefined, isWarning: boolean][] = [
  ['nothing wrong', { 'a.json': server({}) }, undefined, false],
  [
    'a schema that cannot be used',
    { 'a.json': server({ inputSchema: { type: 'object', properties: { a: { type: 'strng' } } } }) },
    /^.*a\.json: servers\[0\]\.tools\[0\]\.inputSchema \(n\/s\/t\): cannot be used: /,
    false,
  ],
  [
    'a recorded answer that does not fit',
    {
      'a.json': {
        ...server({ outputSchema: { type: 'object', properties: { n: { type: 'integer' } } } }),
        mocks: [{ server: 'n/s', tool: 't', result: { structuredContent: { n: 'x' } } }],
      },
    },
    /^.*a\.json: mocks\[0\]\.result\.structuredContent \(n\/s\/t\): does not fit the outputSchema: /,
    false,
  ],
  [
    'arguments that no call can have',
    {
      'a.json': {
        ...server({ inputSchema: closed }),
        mocks: [{ server: 'n/s', tool: 't', arguments: { recipeID: 'x' }, result: { content: [] } }],
      },
    },
    /mocks\[0\]\.arguments \(n\/s\/t\): no call can have these: arguments has an unknown field "recipeID"/,
    true,
  ],
  [
    'a pattern that RE2 does not know',
    { 'a.json': server({ outputSchema: { type: 'object', properties: { a: { pattern: '(?=a)' } } } }) },
    /RE2 does not know the pattern \(\?=a\)/,
    true,
  ],
  [
    'a key of nobody',
    { 'a.json': { ...server({}), apiKeys: [{ name: 'laptop', userId: 'evaa', key }] } },
    /a\.json: apiKeys\[0\]\.userId \(evaa\/laptop\): "evaa" belongs to no organization and owns no namespace; did you mean "eva"\?$/,
    true,
  ],
  [
    'an operator, who needs to belong to nobody',
    { 'a.json': { ...server({}), apiKeys: [{ userId: 'root', key, operator: true }] } },
    undefined,
    true,
  ],
  [
    'an address of the LAN',
    { 'a.json': connection('http://192.168.1.5/mcp') },
    /a\.json: connections\[0\]\.mcpUrl \(n\/c\): is not a public address: to allow it, restart postern with --allow-upstream/,
    true,
  ],
  ['this machine', { 'a.json': connection('http://localhost:3000/mcp') }, /is not a public address/, true],
  [
    'this machine, mocked',
    { 'a.json': connection('http://localhost/', { server: 'n/s', mock: { enabled: true } }) },
    undefined,
    true,
  ],
  ['a name of the LAN, which only it knows', { 'a.json': connection('http://tools.internal/mcp') }, undefined, true],
  [
    'a file of another format',
    { 'a.json': server({}), 'b.jsonc': '{}' },
    /b\.jsonc: is not read: fixtures are \*\.json files, and not in subfolders$/,
    true,
  ],
  ['YAML', { 'a.json': server({}), 'b.yaml': '' }, /b\.yaml: is not read/, true],
  ['capitals', { 'a.json': server({}), 'b.JSON': '{}' }, /b\.JSON: is not read/, true],
  ['a subfolder', { 'a.json': server({}), 'more/b.json': '{}' }, /more: is not read/, true],
]

describe('check', () => {
  for (const [what, files, line, isWarning] of rows) {
    test(what, async () => {
      using place = workplace()
      const folder = join(place.folder, 'fixtures')
      mkdirSync(folder)
      for (const [name, content] of Object.entries(files)) {
        mkdirSync(dirname(join(folder, name)), { recursive: true })
        writeFileSync(join(folder, name), typeof content === 'string' ? content : JSON.stringify(content))
      }
      const plain = await check(folder)
      const strict = await check(folder, '--strict')
      const fine = { code: 0, stdout: expect.stringMatching(/^Fine: 1 file with /) }
      if (line === undefined) {
        for (const ran of [plain, strict]) expect(ran).toEqual({ ...fine, stderr: '' })
        return
      }
      if (isWarning) expect(plain).toEqual({ ...fine, stderr: expect.stringMatching(/^warning: [^\n]*\n$/) })
      else expect(plain).toEqual(strict)
      const [first = '', last, ...rest] = strict.stderr.split('\n')
      expect({ code: strict.code, stdout: strict.stdout, rest }).toEqual({ code: 1, stdout: '', rest: [''] })
      expect(first).toMatch(line)
      expect(last).toBe('1 problem: the fixtures can be loaded, but these should be fixed')
    })
  }

  test('the sample, strictly', async () => {
    using place = workplace()
    expect(await run(place, ['check', '--strict', sampleFolder])).toMatchObject({ code: 0, stderr: '' })
  })
})

/** In this process, because there are some thirty cases. */
async function check(...args: readonly string[]): Promise<Ran> {
  const ran = { code: 0, stdout: '', stderr: '' }
  const terminal = {
    stdout(text: string) {
      ran.stdout += text
    },
    stderr(text: string) {
      ran.stderr += text
    },
    isStdoutClosed: () => false,
  }
  const exit = (code: number) => {
    ran.code = code
  }
  try {
    await createProgram({ terminal, json: false, exit }).parseAsync(['check', ...args], { from: 'user' })
    return ran
  } catch (error) {
    if (!(error instanceof CommandError)) throw error
    return { ...ran, code: error.exitCode, stderr: `${ran.stderr}${error.message}\n` }
  }
}
