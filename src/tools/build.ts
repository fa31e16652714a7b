/**
 * Builds the executable: `bun src/tools/build.ts [OUTFILE]`. LMDB's native addon is embedded, because lmdb's own loader
 * looks for files next to it at run time, and a compiled program has none there. The same source gives the same bytes,
 * whatever the folder and the name of the output.
 */

import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, resolve } from 'node:path'
import { bundleConsole, type ConsoleFiles } from '../features/console/bundle.ts'

const source = resolve(import.meta.dir, '..')

/** Path of the addon for this machine; npm installs the package of the host. */
function addonPath(): string {
  const require = createRequire(import.meta.url)
  const lmdbRequire = createRequire(require.resolve('lmdb'))
  const libc = process.platform === 'linux' ? '.glibc' : ''
  const folder = dirname(lmdbRequire.resolve(`@lmdb/lmdb-${process.platform}-${process.arch}/package.json`))
  return join(folder, `node.napi${libc}.node`)
}

export interface Build {
  readonly outfile: string
  /** Path of LMDB's native addon for the target machine. */
  readonly addon: string
  /** The runtime for the target machine, and Bun's name of the target. Without it, the runtime that runs this. */
  readonly runtime?: { readonly file: string; readonly target: string }
}

export async function build({ outfile, addon, runtime }: Build): Promise<void> {
  const folder = dirname(resolve(outfile))
  mkdirSync(folder, { recursive: true })
  const draft = mkdtempSync(join(folder, '.build-'))
  try {
    // The output contains its own name, so always build under the same name and rename afterwards.
    await compile(join(draft, 'postern'), addon, runtime)
    // On Windows the name ends with .exe.
    for (const made of readdirSync(draft)) renameSync(join(draft, made), outfile)
  } finally {
    rmSync(draft, { recursive: true, force: true })
  }
}

/** SHA-256 in hex, as `sha256sum` prints it. */
export async function sha256(file: string): Promise<string> {
  return new Bun.CryptoHasher('sha256').update(await Bun.file(file).bytes()).digest('hex')
}

async function compile(outfile: string, addon: string, runtime: Build['runtime']): Promise<void> {
  const result = await Bun.build({
    // The workers are started by their paths next to the main program.
    entrypoints: ['main.ts', 'features/tokens/signing-worker.ts', 'http/accept-watch.ts'].map((file) =>
      join(source, file),
    ),
    target: 'bun',
    format: 'esm',
    bytecode: true,
    // A command loads its own code alone, by the imports that it makes when it runs. Starts are a third faster so.
    splitting: true,
    // Not `identifiers`: the framework recognizes its errors by class name, and its checks would accept everything.
    minify: { whitespace: true, syntax: true, identifiers: false },
    plugins: [carry(addon), carryConsole(await bundleConsole())],
    compile: {
      outfile,
      ...(runtime && { executablePath: runtime.file, target: runtime.target }),
      // Files in the working directory must not decide what runs.
      autoloadDotenv: false,
      autoloadBunfig: false,
      autoloadTsconfig: false,
      autoloadPackageJson: false,
    } as Bun.CompileBuildOptions,
  })
  if (!result.success) throw new AggregateError(result.logs, 'the build failed')
}

/** Replaces the package that lmdb loads its addon through by the embedded addon. */
function carry(addon: string): Bun.BunPlugin {
  return {
    name: 'carry the LMDB addon',
    setup(build) {
      build.onResolve({ filter: /^node-gyp-build-optional-packages$/ }, () => ({
        path: 'addon-loader',
        namespace: 'carried',
      }))
      build.onResolve({ filter: /^carried-addon$/ }, () => ({ path: 'lmdb.node', namespace: 'carried' }))
      // msgpackr works without its addon, and nothing here uses msgpackr.
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

/** Replaces the module that bundles the console by one that has its files. */
function carryConsole({ assets, script, style }: ConsoleFiles): Bun.BunPlugin {
  const all = assets.map(({ gzip, ...asset }) => ({ ...asset, gzip: Buffer.from(gzip).toString('base64') }))
  return {
    name: 'carry the console',
    setup(build) {
      build.onLoad({ filter: /[\\/]src[\\/]features[\\/]console[\\/]bundle\.ts$/ }, () => ({
        contents: `
          const all = ${JSON.stringify({ assets: all, script, style })}
          const assets = () => all.assets.map((one) => ({ ...one, gzip: Buffer.from(one.gzip, 'base64') }))
          export const bundleConsole = async () => ({ ...all, assets: assets() })`,
        loader: 'js',
      }))
    },
  }
}

if (import.meta.main) {
  const outfile = process.argv[2] ?? 'dist/postern'
  await build({ outfile, addon: addonPath() })
  console.log(`${await sha256(outfile)}  ${outfile}`)
}
