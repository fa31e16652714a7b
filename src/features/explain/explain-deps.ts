/** The parts that explaining needs. */

import type { SharedParts } from '../../auth/shared-parts.ts'
import type { KeptLists } from '../endpoint/kept-lists.ts'
import type { Pins } from '../pins/pins.ts'

export interface ExplainDeps
  extends Pick<SharedParts, 'authorizer' | 'authenticator' | 'store' | 'links' | 'base' | 'issuer' | 'clock'> {
  /** The lists that servers gave last. */
  readonly kept: Pick<KeptLists, 'use'>
  readonly pins: Pick<Pins, 'settingOf' | 'of'>
}
