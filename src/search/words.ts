/**
 * The words of a text, for search: without case and accents. Names of programs come apart: `createIssue` and
 * `create_issue` both give the words `create` and `issue` (door contract, 2.4).
 */

/** In order, with repetitions. */
export function wordsOf(text: string): string[] {
  const parts = text.replace(/([\p{Ll}\p{N}])(\p{Lu})/gu, '$1 $2').replace(/(\p{Lu})(\p{Lu}\p{Ll})/gu, '$1 $2')
  const plain = parts.normalize('NFKD').replace(/\p{M}/gu, '').toLowerCase()
  return plain.match(/[\p{L}\p{N}]+/gu) ?? []
}
