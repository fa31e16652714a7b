/** JSON Schema's `multipleOf`, for the server and for the form of the console. */

/** 19.99 is a multiple of 0.01, though 19.99 / 0.01 is 1998.9999999999998: neither is exact in two's powers. */
export function isMultiple(value: number, of: number): boolean {
  const times = value / of
  return Number.isInteger(times) || Math.abs(times - Math.round(times)) <= 2 * Number.EPSILON * Math.abs(times)
}
