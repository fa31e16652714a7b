/**
 * Builds the executable: `bun src/tools/build.ts [OUTFILE]`. LMDB's native addon goes into it: the loader that
 * lmdb uses looks for files beside it at run time, where a compiled program has none. The same source gives the
 * same bytes, in whichever folder and under whichever name it is built.
 */

import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, resolve } from 'node:path'

/** The product, apart from these tools. */
const source = resolve(import.meta.dir, '..')

/** The addon's package for this machine; npm installs the one of the host. */
function addonPath(): string {
  const require = createRequire(import.meta.url)
  const lmdbRequire = createRequire(require.resolve('lmdb'))
  const libc = process.platform === 'linux' ? '.glibc' : ''
  const folder = dirname(lmdbRequire.resolve(`@lmdb/lmdb-${process.platform}-${process.arch}/package.json`))
  return join(folder, `node.napi${libc}.node`)
}

export interface Build {
  readonly outfile: string
  /** LMDB's native addon for the machine that will run it. */
  readonly addon: string
  /** The runtime for that machine, and what it calls the machine; the one that runs this, without it. */
  readonly runtime?: { readonly file: string; readonly target: string }
}

export async function build({ outfile, addon, runtime }: Build): Promise<void> {
  const folder = dirname(resolve(outfile))
  mkdirSync(folder, { recursive: true })
  const draft = mkdtempSync(join(folder, '.build-'))
  try {
    // The name is in the file, so it is always this one, and the other is given to it after.
    await compile(join(draft, 'postern'), addon, runtime)
    // For Windows it ends with .exe.
    for (const made of readdirSync(draft)) renameSync(join(draft, made), outfile)
  } finally {
    rmSync(draft, { recursive: true, force: true })
  }
}

/** As `sha256sum` writes it. */
export async function sha256(file: string): Promise<string> {
  return new Bun.CryptoHasher('sha256').update(await Bun.file(file).bytes()).digest('hex')
}

async function compile(outfile: string, addon: string, runtime: Build['runtime']): Promise<void> {
  const result = await Bun.build({
    // The threads' program too: it is started by its place beside the first.
    entrypoints: ['main.ts', 'features/tokens/signing-worker.ts'].map((file) => join(source, file)),
    target: 'bun',
    format: 'esm',
    bytecode: true,
    // Not `identifiers`: the framework knows its errors by their names, and its checks would pass everything.
    minify: { whitespace: true, syntax: true, identifiers: false },
    plugins: [carry(addon)],
    compile: {
      outfile,
      ...(runtime && { executablePath: runtime.file, target: runtime.target }),
      // Whoever can write the working directory must not decide what runs.
      autoloadDotenv: false,
      autoloadBunfig: false,
      autoloadTsconfig: false,
      autoloadPackageJson: false,
    } as Bun.CompileBuildOptions,
  })
  if (!result.success) throw new AggregateError(result.logs, 'the build failed')
}

/** lmdb asks one package for its addon; here it is told what the executable carries. */
function carry(addon: string): Bun.BunPlugin {
  return {
    name: 'carry the LMDB addon',
    setup(build) {
      build.onResolve({ filter: /^node-gyp-build-optional-packages$/ }, () => ({
        path: 'addon-loader',
        namespace: 'carried',
      }))
      build.onResolve({ filter: /^carried-addon$/ }, () => ({ path: 'lmdb.node', namespace: 'carried' }))
      // An addon of msgpackr's, which does without; nothing here packs messages.
      build.onResolve({ filter: /^msgpackr-extract$/ }, () => ({ path: 'nothing', namespace: 'carried' }))
      build.onLoad({ filter: /^addon-loader$/, namespace: 'carried' }, () => ({
        contents: `
          const { loadAddon } = require(${JSON.stringify(join(source, 'storage/lmdb/addon.ts'))})
          module.exports = () => loadAddon(require('carried-addon'))`,
        loader: 'js',
      }))
      build.onLoad({ filter: /^lmdb\.node$/, namespace: 'carried' }, async () => ({
        contents: await Bun.file(addon).bytes(),
        loader: 'file',
      }))
      build.onLoad({ filter: /^nothing$/, namespace: 'carried' }, () => ({ contents: '', loader: 'js' }))
    },
  }
}

if (import.meta.main) {
  const outfile = process.argv[2] ?? 'dist/postern'
  await build({ outfile, addon: addonPath() })
  console.log(`${await sha256(outfile)}  ${outfile}`)
}
