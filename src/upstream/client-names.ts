/** The names of the HTTP/1.1 clients. A file of its own, so that parsing flags does not load the clients. */

export const clientNames = ['parser', 'node'] as const
export type ClientName = (typeof clientNames)[number]
