/** The parts that explaining needs. */

import type { KeptLists } from '../endpoint/kept-lists.ts'
import type { Pins } from '../pins/pins.ts'
import type { RecordsDeps } from '../records/readable-calls.ts'

export interface ExplainDeps extends RecordsDeps {
  readonly kept: Pick<KeptLists, 'use'>
  readonly pins: Pick<Pins, 'settingOf' | 'of'>
}
