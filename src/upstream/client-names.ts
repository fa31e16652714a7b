/** The names of the HTTP/1.1 clients, for flags: read before anything of a client is loaded. */

export const clientNames = ['parser', 'node'] as const
export type ClientName = (typeof clientNames)[number]
