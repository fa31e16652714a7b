/** Names that people choose: what is certainly wrong is said before the server is asked. */

export const idHint = 'letters, digits, ".", "_" or "-"'
export const isConnectionId = (id: string) => /^[\w-][\w.-]*$/.test(id) && id !== 'mcp'
