/** Style sheets are loaded by the document, and have no exports. */
declare module '*.css'
