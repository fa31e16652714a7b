/** Other texts that a forgiving decoder reads as the same bytes. */

export function otherSpellings(base64url: string): string[] {
  const bytes = Buffer.from(base64url, 'base64url')
  const spellings = [
    `${base64url}=`,
    `${base64url}A`,
    `${base64url.slice(0, 2)}*${base64url.slice(2)}`,
    bytes.toString('base64'),
    // The last character has bits that are left over, except where none are.
    ...['A', 'B', 'g', 'w', 'Q', '_', '1'].map((last) => base64url.slice(0, -1) + last),
  ]
  return spellings.filter((text) => text !== base64url && Buffer.from(text, 'base64url').equals(bytes))
}
