/**
 * lmdb-js, which loads its native addon as soon as it is imported: only `lmdb-root.ts` does, when a store is opened.
 */

export { ABORT, open } from 'lmdb'
