/** Commands that speak to a running platform over HTTP. */

import type { Command } from 'commander'
import type { Context } from '../options.ts'
import { addConnectionCommands } from './connection-commands.ts'
import { remoteCommands } from './context.ts'
import { addLoginCommands } from './login.ts'
import { addNamespaceCommands } from './namespace-commands.ts'
import { addOrganizationCommands } from './organization-commands.ts'
import { addServerActions } from './server-commands.ts'
import { addMintCommand } from './token-mint.ts'
import { addToolCommands } from './tool-commands.ts'

/** `server` and `token`: groups that have commands of their own already. */
export function addClientCommands(postern: Command, context: Context, server: Command, token: Command): void {
  const remotes = remoteCommands(context)
  addLoginCommands(postern, remotes, context.terminal)
  addServerActions(server, remotes)
  addNamespaceCommands(postern, remotes)
  addOrganizationCommands(postern, remotes)
  addConnectionCommands(postern, remotes)
  addToolCommands(postern, remotes)
  addMintCommand(token, remotes)
}
