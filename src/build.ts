/**
 * Builds the executable: `bun src/build.ts [OUTFILE]`. LMDB's native addon goes into it: the loader that
 * lmdb uses looks for files beside it at run time, where a compiled program has none.
 */

import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

/** The addon's package for this machine; npm installs the one of the host. */
function addonPath(): string {
  const require = createRequire(import.meta.url)
  const lmdbRequire = createRequire(require.resolve('lmdb'))
  const libc = process.platform === 'linux' ? '.glibc' : ''
  const folder = dirname(lmdbRequire.resolve(`@lmdb/lmdb-${process.platform}-${process.arch}/package.json`))
  return join(folder, `node.napi${libc}.node`)
}

/** lmdb asks this package for its addon; here it is told where it is, at build time. */
const embedAddon: Bun.BunPlugin = {
  name: 'embed the LMDB addon',
  setup(build) {
    build.onResolve({ filter: /^node-gyp-build-optional-packages$/ }, () => ({
      path: 'lmdb-addon',
      namespace: 'embedded',
    }))
    build.onLoad({ filter: /.*/, namespace: 'embedded' }, () => ({
      contents: `module.exports = () => require(${JSON.stringify(addonPath())})`,
      loader: 'js',
    }))
  },
}

const outfile = process.argv[2] ?? 'dist/postern'
const result = await Bun.build({
  entrypoints: [join(import.meta.dir, 'main.ts')],
  target: 'bun',
  format: 'esm',
  bytecode: true,
  // Not `identifiers`: the framework knows its errors by their names, and its checks would pass everything.
  minify: { whitespace: true, syntax: true, identifiers: false },
  plugins: [embedAddon],
  compile: {
    outfile,
    // Whoever can write the working directory must not decide what runs.
    autoloadDotenv: false,
    autoloadBunfig: false,
    autoloadTsconfig: false,
    autoloadPackageJson: false,
  } as Bun.CompileBuildOptions,
})
if (!result.success) {
  for (const message of result.logs) console.error(message)
  process.exit(1)
}
console.log(outfile)
