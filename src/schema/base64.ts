/** Base64 that clients send: one spelling for the same bytes, so that nobody can vary what was given to them. */

/** The bytes. Undefined for any encoding other than the canonical one. */
export function canonicalBytes(text: string, encoding: 'base64' | 'base64url' = 'base64url'): Buffer | undefined {
  const bytes = Buffer.from(text, encoding)
  // The decoder takes both alphabets, and ignores other characters and bits that are left over.
  return bytes.toString(encoding) === text ? bytes : undefined
}
