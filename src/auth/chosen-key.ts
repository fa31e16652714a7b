/** API keys that an operator or a fixture chose, in place of random ones (contract, 2.1). */

import { apiKeyCharsMax, apiKeyCharsMin } from '../limits.ts'

/** Why a key that a user chose is not acceptable, or undefined. Only the characters of a bearer token are allowed. */
export function chosenKeyProblem(key: string): string | undefined {
  if (key.length < apiKeyCharsMin) return `must have at least ${apiKeyCharsMin} characters`
  if (key.length > apiKeyCharsMax) return `must have at most ${apiKeyCharsMax} characters`
  if (!/^[A-Za-z0-9._~+/-]+=*$/.test(key)) return 'must be made of letters, digits and . _ ~ + / - only'
  return undefined
}
