/** A number with its noun, for output of commands. */

/** `1 entry`, `2 entries`. `many`: the plural, where it is not the noun with an s. */
export function countText(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`
}
