/** Flags that several commands share. */

import { type Command, Option } from 'commander'

/** `--data`, with its environment variable and default. */
export const dataOption = (words = 'data folder; created if missing') =>
  new Option('--data <dir>', words).env('POSTERN_DATA').default('./postern-data')

/** True if the operator gave `--data`. Commands create a missing folder only then (`openNamedDataFolder`). */
export const isNamed = (command: Command) => ({ isNamed: command.getOptionValueSource('data') !== 'default' })
export const makingOption = () => dataOption('data folder; created if named here and missing')

/** Collects the values of a repeatable flag. */
export const collect = (value: string, previous: readonly string[] = []) => [...previous, value]
