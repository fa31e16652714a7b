/** The console's files as they are sent: made when somebody first asks, since most processes never show a console. */

import { type Asset, bundleConsole } from './bundle.ts'

/** As Blobs, because a Response does not copy them, and a stranger may ask again and again. */
interface ServedAsset extends Pick<Asset, 'name' | 'type'> {
  readonly gzip: Blob
  readonly plain: Blob
}

interface Served {
  readonly assets: readonly ServedAsset[]
  /** Names of the files that the document loads. */
  readonly script: string
  readonly style: string
}

export class ServedFiles {
  #made: Promise<Served> | undefined

  all(): Promise<Served> {
    this.#made ??= makeServed()
    return this.#made
  }
}

async function makeServed(): Promise<Served> {
  const { assets, script, style } = await bundleConsole()
  const served = assets.map(({ name, type, gzip }) => {
    return { name, type, gzip: new Blob([gzip]), plain: new Blob([Bun.gunzipSync(gzip)]) }
  })
  return { assets: served, script, style }
}
