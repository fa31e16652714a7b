/** `postern token mint`. */

import type { CreateTokenResponse } from '../../model/token.ts'
import { readJsonFile } from '../json-input.ts'
import { type CommandContext, openClient } from './api-client.ts'
import { printSentence } from './output.ts'
import { readPairs } from './pairs.ts'

export interface MintFlags {
  readonly policy?: string
  readonly organization?: string
  readonly namespaces?: readonly string[]
  readonly resources?: readonly string[]
  readonly operations?: readonly string[]
  readonly metadata?: readonly string[]
  readonly rpc?: readonly string[]
  readonly ttl?: string
}

/** Prints the token alone, so that a script can keep it. */
export async function mintToken(mint: MintFlags, { flags, environment, terminal }: CommandContext): Promise<void> {
  const { policy: file, organization, namespaces, resources, operations, metadata, rpc, ttl } = mint
  const constraint = {
    ...(namespaces && { namespaces }),
    ...(resources && { resources }),
    ...(operations && { operations }),
    ...(metadata && { metadata: readPairs(metadata) }),
    ...(rpc && { rpcReqMatch: readPairs(rpc) }),
    ...(ttl !== undefined && { ttl }),
  }
  const whole = file === undefined ? [] : [readJsonFile(file)].flat()
  const policy = [...whole, ...(Object.keys(constraint).length > 0 ? [constraint] : [])]
  const body = {
    ...(policy.length > 0 && { policy }),
    ...(organization !== undefined && { organizationId: organization }),
  }
  const minted = await openClient(flags, environment).request<CreateTokenResponse>('POST', '/tokens', { body })
  printSentence(minted, flags, minted.token, terminal)
}
