/** A buffer that grows to the largest length requested. Each call overwrites what the one before it returned. */
export function createScratchBuffer(): (length: number) => Buffer<ArrayBuffer> {
  let room = Buffer.allocUnsafeSlow(64 * 1024)
  return (length) => {
    if (length > room.length) room = Buffer.allocUnsafeSlow(length)
    return room.subarray(0, length)
  }
}
