/** The version of the platform, as its package has it. */

import manifest from '../package.json' with { type: 'json' }

export const version: string = manifest.version
