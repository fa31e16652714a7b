/** lmdb-js. It loads its native addon on import, so only `root.ts` imports it, when a store is opened. */

export { ABORT, open } from 'lmdb'
