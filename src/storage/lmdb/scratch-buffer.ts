/**
 * A reusable buffer. The returned slice belongs to the caller until the next call, which overwrites it. The buffer
 * grows to the largest length requested and never shrinks.
 */
export function createScratchBuffer(): (length: number) => Buffer<ArrayBuffer> {
  let room = Buffer.allocUnsafeSlow(64 * 1024)
  return (length) => {
    if (length > room.length) room = Buffer.allocUnsafeSlow(length)
    return room.subarray(0, length)
  }
}
