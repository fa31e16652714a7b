/**
 * A hash over what the pictures show, which says when they are older than the console. Nobody knows how a room looks
 * without a browser, so the hash is made from the source: the texts, elements and classes of the rooms, their style
 * sheet, and the sample company. Comments, types, names, numbers and logic are no part of it: a change of those seldom
 * shows, and would ask for new pictures each time. Somebody who changes the look by them alone runs `make screenshots`
 * without being asked.
 */

import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { rooms } from './rooms.ts'

const root = resolve(import.meta.dir, '../..')
export const pictures = join(root, 'docs/images')
/** Beside the pictures. */
export const hashFile = join(pictures, 'console.sha256')

/** The JSX becomes calls, whose texts are in quotes like any other. */
const compiler = new Bun.Transpiler({
  loader: 'tsx',
  tsconfig: { compilerOptions: { jsx: 'react-jsx', jsxImportSource: 'preact' } },
})
const texts = /"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`/g

/** In the order of the source, without the names of other files and packages. */
function textsIn(source: string): string[] {
  const code = compiler.transformSync(source).replaceAll(/\b(?:from|import)\s*\(?\s*"[^"]*"/g, '')
  return code.match(texts) ?? []
}

/** Those of the frame, the parts and the forms, and the rooms that there are pictures of. */
function picturedFiles(): string[] {
  const folder = join(root, 'src/console')
  const all = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  const shared = all.filter((file) => file.endsWith('.tsx') && !file.startsWith('rooms/'))
  return [...shared, ...rooms.map(({ room }) => `rooms/${room}.tsx`)].sort().map((file) => join(folder, file))
}

function styles(): string {
  const text = ['src/console/style.css', 'src/http/look.css']
    .map((file) => readFileSync(join(root, file), 'utf8'))
    .join('\n')
  return text.replaceAll(/\/\*[^]*?\*\//g, '').replaceAll(/\s+/g, ' ')
}

function sample(): unknown[] {
  const folder = join(root, 'fixtures')
  const files = readdirSync(folder).filter((file) => /^[^.]*\.json$/.test(file))
  return files.sort().map((file) => JSON.parse(readFileSync(join(folder, file), 'utf8')))
}

/** SHA-256 in hex. */
export function hashOfShown(): string {
  const shown = [picturedFiles().map((file) => textsIn(readFileSync(file, 'utf8'))), styles(), sample()]
  return createHash('sha256').update(JSON.stringify(shown)).digest('hex')
}
