/**
 * The console's files as a browser loads them. The build of the executable replaces this module by one that has them
 * already (`tools/build.ts`); from the source they are made when somebody first asks.
 */

import { join } from 'node:path'

export interface Asset {
  /** With a hash of its content: it never changes. */
  readonly name: string
  readonly type: string
  readonly gzip: Uint8Array<ArrayBuffer>
}

export interface ConsoleFiles {
  readonly assets: readonly Asset[]
  readonly script: string
  readonly style: string
}

const types: Readonly<Record<string, string>> = {
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
}

export async function bundleConsole(): Promise<ConsoleFiles> {
  const built = await Bun.build({
    entrypoints: [join(import.meta.dir, '../../console/main.tsx')],
    target: 'browser',
    minify: true,
    splitting: true,
    naming: '[name]-[hash].[ext]',
  })
  if (!built.success) throw new AggregateError(built.logs, 'the console cannot be built')
  const assets = await Promise.all(
    built.outputs.map(async (output): Promise<Asset> => {
      const name = output.path.replace(/^.*\//, '')
      const type = types[name.replace(/^.*\./, '')] ?? 'application/octet-stream'
      return { name, type, gzip: Bun.gzipSync(new Uint8Array(await output.arrayBuffer()), { level: 9 }) }
    }),
  )
  const entry = (kind: string) => assets.find(({ name }) => name.startsWith('main-') && name.endsWith(kind))?.name ?? ''
  return { assets, script: entry('.js'), style: entry('.css') }
}
