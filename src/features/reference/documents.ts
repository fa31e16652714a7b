/**
 * The documents of `docs/`, embedded in the executable so that they are available without a network. Imported on the
 * first request for one.
 */

import { readDocuments } from './read-documents.ts' with { type: 'macro' }

/** Markdown by page name; `README` lists the others. */
export const documents: ReadonlyMap<string, string> = new Map(Object.entries(readDocuments()))
