/** Flags that several commands have. */

import { type Command, Option } from 'commander'

export const dataOption = (words = 'data folder; created if missing') =>
  new Option('--data <dir>', words).env('POSTERN_DATA').default('./postern-data')

/** Commands make a data folder only where one was named: was it? */
export const isNamed = (command: Command) => ({ isNamed: command.getOptionValueSource('data') !== 'default' })
export const makingOption = () => dataOption('data folder; created if named here and missing')

export const collect = (value: string, previous: readonly string[] = []) => [...previous, value]
