/** Bytes as the store gives them, compared and copied. */

/** Bytes of memory for a character of a text, of any script. */
export const bytesPerCharacter = 2

/** Compares a stored value with an expected one. undefined (read) and null (expected) both mean "nothing stored". */
export function equalBytes(a: Uint8Array | undefined, b: Uint8Array | null): boolean {
  return a === undefined || b === null ? a === undefined && b === null : Buffer.compare(a, b) === 0
}

/** A Buffer over the same memory. Most bytes here are one already, and creating one is not free. */
export function asBuffer(bytes: Uint8Array): Buffer {
  return bytes instanceof Buffer ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
}

const encoder = new TextEncoder()

/** The UTF-8 bytes of a text; `Buffer.from` takes three times as long. */
export function utf8Of(text: string): Uint8Array<ArrayBuffer> {
  return encoder.encode(text)
}

const utf8 = new TextDecoder('utf-8', { ignoreBOM: true })

/** The UTF-8 text that they are. */
export function textOf(bytes: Uint8Array): string {
  return utf8.decode(bytes)
}

/** A copy that shares no memory: slice() of a Buffer is a view, and that of Uint8Array takes three times as long. */
export function copyBytes(bytes: Uint8Array, start = 0, end = bytes.length): Buffer<ArrayBuffer> {
  const copy = Buffer.allocUnsafeSlow(end - start)
  asBuffer(bytes).copy(copy, 0, start, end)
  return copy
}
