/** Rooms that are loaded when somebody first goes there: the first view is small. */

import type { ComponentType } from 'preact'
import { useEffect } from 'preact/hooks'
import { useAction } from '../resource.ts'
import { Busy } from './parts.tsx'
import { Problem } from './room.tsx'

/** The room of this name, which `load` resolves with. */
export function lazy(name: string, load: () => Promise<ComponentType>): ComponentType {
  let Loaded: ComponentType | undefined
  return () => {
    const loading = useAction(async () => {
      Loaded = await load().catch(() => {
        throw new Error('The page could not be loaded, because postern does not answer.')
      })
    })
    const { error } = loading
    const begin = () => void loading.run()
    useEffect(() => {
      if (Loaded === undefined) begin()
    }, [])
    if (Loaded !== undefined) return <Loaded />
    return (
      <main id="main" data-room={name} data-state={error === undefined ? 'loading' : 'error'}>
        {error === undefined ? <Busy /> : <Problem error={error} again={begin} />}
      </main>
    )
  }
}
