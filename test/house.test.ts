/** The rules of the house that a machine can check. */

import { expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'

const root = resolve(import.meta.dir, '..')
const sources = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' }).filter((name) =>
  name.endsWith('.ts'),
)
const importsOf = (file: string) =>
  [...readFileSync(join(root, 'src', file), 'utf8').matchAll(/from '(\.[^']+)'/g)].map(([, path = '']) =>
    relative(join(root, 'src'), resolve(root, 'src', dirname(file), path)),
  )
const folderOf = (file: string) => (file.includes('/') ? (file.split('/')[0] ?? '') : '')

/** Who may import whom: each folder those further down, and itself. Features do not import features. */
const layers: readonly (readonly string[])[] = [
  ['commands', 'metrics'],
  ['transfer'],
  ['fast-lane'],
  ['tokens', 'connections', 'servers', 'fixtures', 'openapi', 'gateway'],
  ['upstream', 'mocks'],
  ['auth'],
  ['http'],
  ['audit'],
  ['registry'],
  ['storage'],
  ['policy'],
  ['model'],
]
const heightOf = (folder: string) => layers.findIndex((layer) => layer.includes(folder))

test('imports run one way, and features do not import features', () => {
  for (const file of sources) {
    const from = folderOf(file)
    for (const target of importsOf(file)) {
      const to = folderOf(target)
      if (from === '' || to === '' || from === to || target.startsWith('../')) continue
      expect({ file, target, allowed: heightOf(from) < heightOf(to) }).toEqual({ file, target, allowed: true })
    }
  }
})

test('policy and model know no I/O, no framework and no clock', () => {
  for (const file of sources.filter((name) => /^(?:policy|model)\//.test(name))) {
    const text = readFileSync(join(root, 'src', file), 'utf8')
    expect({
      file,
      found: /from '(?:node:fs|node:net|elysia|lmdb|bun)|Date\.now|new Date\(\)|process\./.exec(text)?.[0],
    }).toEqual({ file, found: undefined })
  }
})

test('tweetnacl signs and nothing else imports it; the engines are opened in one place', () => {
  const importers = (name: string) =>
    sources.filter((file) => readFileSync(join(root, 'src', file), 'utf8').includes(`from '${name}'`)).sort()
  expect(importers('tweetnacl')).toEqual(['auth/signature.ts'])
  expect(importers('lmdb')).toEqual(['storage/lmdb-library.ts', 'storage/lmdb-root.ts'])
  expect(sources.filter((file) => importsOf(file).includes('storage/lmdb.ts')).sort()).toEqual(['data-folder.ts'])
})

test('every source file says first what it is', () => {
  for (const file of sources) {
    const text = readFileSync(join(root, 'src', file), 'utf8')
    expect({ file, hasHeader: text.startsWith('/**') || text.split('\n').length < 10 }).toEqual({
      file,
      hasHeader: true,
    })
  }
})
